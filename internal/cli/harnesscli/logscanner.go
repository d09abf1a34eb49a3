package harnesscli

import (
	"archive/zip"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/fit-eval/fit/redact"
)

// maxLogFile is how much of one file is looked at; more is not a log.
const maxLogFile = 1 << 30

// logScanner finds secrets by redacting: whatever the redactor would take out of a trace is what
// must not be in a log. The placeholders that it leaves have names that nobody can know, so a log
// cannot hold one by itself.
type logScanner struct {
	nonce  string
	labels map[string]string // from the name in the placeholder
	values map[string]string // secrets for the redactor, by that name
	short  map[string]string // secrets by label that are too short for it
}

// shortest is what the redactor looks for at least.
const shortest = 4

func newLogScanner() *logScanner {
	return &logScanner{
		nonce:  rand.Text(),
		labels: map[string]string{},
		values: map[string]string{},
		short:  map[string]string{},
	}
}

func (s *logScanner) count() int { return len(s.values) + len(s.short) }

func (s *logScanner) add(label, literal string) {
	if len(literal) < shortest {
		s.short[label] = literal
		return
	}
	name := fmt.Sprintf("%s_%d_", s.nonce, len(s.labels))
	s.labels[name], s.values[name] = label, literal
}

// file returns the labels of the secrets in one file of an archive.
func (s *logScanner) file(member *zip.File) ([]string, error) {
	if !member.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	reader, err := member.Open()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	found := map[string]bool{}
	after := &finder{found: found, words: map[string]string{}}
	for name, label := range s.labels {
		after.words["[REDACTED:env:"+name+"]"] = label
	}
	before := &finder{found: found, words: map[string]string{}}
	for label, literal := range s.short {
		before.words[literal] = label
	}
	redacted := redact.New(redact.Config{Extra: s.values}).Writer(after)
	n, err := io.Copy(io.MultiWriter(before, redacted), io.LimitReader(reader, maxLogFile+1))
	if err == nil && n > maxLogFile {
		err = fmt.Errorf("it has more than %d bytes", maxLogFile)
	}
	err = errors.Join(err, redacted.Close())
	return slices.Sorted(maps.Keys(found)), err
}

// finder looks for words in what is written to it, also where two writes cut one in half.
type finder struct {
	words map[string]string // to labels
	found map[string]bool
	tail  []byte
}

func (f *finder) Write(p []byte) (int, error) {
	text := slices.Concat(f.tail, p)
	longest := 0
	for word, label := range f.words {
		longest = max(longest, len(word))
		if bytes.Contains(text, []byte(word)) {
			f.found[label] = true
		}
	}
	keep := min(len(text), max(0, longest-1))
	f.tail = append([]byte(nil), text[len(text)-keep:]...)
	return len(p), nil
}
