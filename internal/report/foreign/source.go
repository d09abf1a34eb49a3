package foreign

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/ledger"
)

// Options say how results are read. Zero fields are found out.
type Options struct {
	Format string // one of Formats
	// Columns name columns of a table, by what they hold: {"task": "id"}.
	Columns map[string]string
	// Score names the score that counts where a source has several.
	Score string
}

// ErrUnknown is the error of files in none of the formats.
var ErrUnknown = errors.New("in none of the formats that fit reads: " + strings.Join(Formats(), ", "))

// reader reads one format.
type reader struct {
	format string
	// finds returns the files of a source that has the format; none if it has another.
	finds func(path string, info os.FileInfo) []string
	read  func(s *source, file string) error
}

// readers are all formats. A table is whatever nothing else is.
func readers() []reader {
	return []reader{inspectReader, harborReader, promptfooReader, skillsReader, sweBenchReader, tableReader}
}

// Formats are the names of the formats.
func Formats() []string {
	var names []string
	for _, one := range readers() {
		names = append(names, one.format)
	}
	return names
}

// source collects what is read.
type source struct {
	Options
	Runs
	root    string           // what was named
	from    *ledger.Imported // the file that is being read
	seen    map[ledger.Cell]bool
	runs    map[[2]string]int // runs so far, by arm and task
	series  map[string]int    // the same of what has several files
	files   int               // how many the source has
	rewards []string          // the names of those of all trials
	reward  string            // the name of the one that counts so far
	created map[string]string // when each file says that it was made
	// incomplete says why nobody knows which runs of the whole source are missing.
	incomplete string
	// tries are logs that may be written again when what failed is repeated.
	tries map[string]*try
}

// Read reads the results of another harness: a file or a directory in one of the formats.
func Read(path string, opts Options) (*Runs, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() && !info.Mode().IsRegular() { // reading a pipe might wait forever, and ends only once
		return nil, choiceErrorf("%s is neither a file nor a directory: save it to a file first", path)
	}
	if info.Mode().IsRegular() && info.Size() == 0 {
		return nil, choiceErrorf("%s is empty: it holds no results", path)
	}
	for _, one := range readers() {
		if opts.Format != "" && opts.Format != one.format {
			continue
		}
		if files := one.finds(path, info); len(files) > 0 {
			return readAll(path, files, one, opts)
		}
		if opts.Format != "" {
			return nil, choiceErrorf("%s: there is nothing in the format %s", path, one.format)
		}
	}
	return nil, fmt.Errorf("%s is %w", path, ErrUnknown)
}

// Format names the format of a source, by its content; empty where it has none of them.
func Format(path string) string {
	if info, err := os.Stat(path); err == nil && (info.IsDir() || info.Mode().IsRegular()) {
		for _, one := range readers() {
			if len(one.finds(path, info)) > 0 {
				return one.format
			}
		}
	}
	return ""
}

// FormatTable is the format of what is in no other.
const FormatTable = "table"

func readAll(path string, files []string, one reader, opts Options) (*Runs, error) {
	s := &source{
		Options: opts,
		Runs:    Runs{prefixes: map[string]bool{}, armPrefixes: map[string]bool{}},
		root:    path,
		seen:    map[ledger.Cell]bool{},
		runs:    map[[2]string]int{},
		series:  map[string]int{},
		tries:   map[string]*try{},
		created: map[string]string{},
		files:   len(files),
	}
	whole := sha256.New()
	for _, file := range files {
		digest, err := digestOf(file)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		whole.Write([]byte(digest))
		s.from = &ledger.Imported{Format: one.format, File: s.name(file), SHA256: digest}
		err = one.read(s, file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, inWords(err, one.format))
		}
		slices.Sort(s.from.Doubts)
		s.from.Doubts = slices.Compact(s.from.Doubts)
	}
	if len(s.list) == 0 {
		return nil, choiceErrorf("there is no run in %s", path)
	}
	if opts.Score != "" && len(s.rewards) > 0 {
		if _, err := s.choose("reward", s.rewards); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(s.list, func(a, b run) int { // the order of arms is that of their files
		return strings.Compare(s.created[a.from.File], s.created[b.from.File])
	})
	s.doubtOrder()
	for i := range s.list {
		from := s.list[i].from
		from.Incomplete = cmp.Or(from.Incomplete, s.incomplete)
	}
	s.experiment = "imported-" + hex.EncodeToString(whole.Sum(nil))[:16]
	return &s.Runs, nil
}

// DoubtOrder is the doubt about a source of several arms that does not say which is the baseline.
const DoubtOrder = "which arm came first is not known: arms are in the order of the names of their files"

// doubtOrder notes that the baseline is the first arm by the name of its file only.
func (s *source) doubtOrder() {
	if s.from.Format == skillsReader.format { // its iterations have numbers, and its baselines names
		return
	}
	first := map[string]*ledger.Imported{} // the first file of each arm
	for i := range s.list {
		r := &s.list[i]
		if first[r.arm] != nil {
			continue
		}
		first[r.arm] = r.from
		before := s.list[0].from
		if r.arm == s.list[0].arm || r.from == before || s.created[r.from.File] != s.created[before.File] {
			continue
		}
		for j := range s.list {
			if from := s.list[j].from; !slices.Contains(from.Doubts, DoubtOrder) {
				from.Doubts = append(from.Doubts, DoubtOrder)
			}
		}
		return
	}
}

// name is how a file of the source is called.
func (s *source) name(file string) string {
	if name, err := filepath.Rel(s.root, file); err == nil && name != "." {
		return name
	}
	return filepath.Base(file)
}

// label names an arm after a file, where the file does not say.
func label(file string) string {
	name := filepath.Base(file)
	return cmp.Or(strings.TrimSuffix(name, filepath.Ext(name)), name)
}

// digestOf returns the SHA-256 of a file. A missing file has the digest of an empty one.
func digestOf(path string) (string, error) {
	sum := sha256.New()
	file, err := open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return hex.EncodeToString(sum.Sum(nil)), nil
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// open opens a regular file. To open a pipe might wait forever.
func open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// contentOf is the digest of what a task consists of; two tasks of one name and different content
// are not the same. What we have written ourselves has the digest in place of the content. What has
// none is not known.
func contentOf(parts ...[]byte) string {
	empty := func(part []byte) bool { return len(part) == 0 || string(part) == `""` }
	if !slices.ContainsFunc(parts, func(part []byte) bool { return !empty(part) }) {
		return ""
	}
	if own := digestForm.Get().FindSubmatch(bytes.Join(parts, nil)); own != nil {
		return string(own[1])
	}
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:", len(part))
		sum.Write(part)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

var digestForm = lazyregexp.New(`^(?:\{"content":)?"?(sha256:[0-9a-f]{64})"*\}?$`)

// add adds a run. Its index is negative where the source does not number them. It needs a task, an
// arm and what outcome or failed has set.
func (s *source) add(r run) error {
	if err := s.complete(&r); err != nil {
		return err
	}
	s.list = append(s.list, r)
	return nil
}

// complete fills in what all runs have in common, and checks the whole.
func (s *source) complete(r *run) error {
	if at := [2]string{r.arm, r.task}; r.index < 0 {
		r.index = s.runs[at]
		s.runs[at]++
	}
	if s.seen[r.cell()] {
		return fmt.Errorf("task %s, run %d of %s is there twice", r.task, r.index, r.arm)
	}
	s.seen[r.cell()] = true
	r.from = s.from
	if r.verdict == ledger.Error {
		r.score = nil
	}
	record := r.record()
	if err := record.Validate(); err != nil {
		return fmt.Errorf("task %s, run %d of %s: %w", r.task, r.index, r.arm, err)
	}
	return nil
}

// doubt notes what the file cannot promise.
func (s *source) doubt(format string, args ...any) {
	s.from.Doubts = append(s.from.Doubts, fmt.Sprintf(format, args...))
}

// outcome sets whether a run has passed.
func outcome(r *run, pass bool) {
	r.verdict = ledger.Fail
	if pass {
		r.verdict = ledger.Pass
	}
}

// scored sets a score from 0 to 1. Where it alone decides, whoever has all of it has passed.
func (s *source) scored(r *run, score float64, decides bool) error {
	if !(score >= 0 && score <= 1) {
		return fmt.Errorf("task %s: the score %v is not between 0 and 1; fit stats paired compares scores of any range",
			r.task, score)
	}
	r.score = &score
	if decides {
		s.from.Fractional = s.from.Fractional || score != math.Trunc(score)
		outcome(r, score == 1)
	}
	return nil
}

// failed says that a run has no outcome: that of an error is not known.
func failed(r *run, message string) {
	r.verdict, r.message, r.score = ledger.Error, cmp.Or(cut(message), "no outcome"), nil
}

// millis returns seconds as milliseconds: 1.001 s are 1001 ms.
func millis(seconds float64) int64 { return int64(math.Round(1000 * seconds)) }

// maxRuns bounds how often a task is repeated; no run has a number above it.
const maxRuns = 1_000_000

// maxMessage bounds what is kept of an error, in bytes.
const maxMessage = 2000

func cut(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxMessage)], "")
}

// choose returns the score that counts: the one that was asked for, or the only one.
func (s *source) choose(flag string, names []string) (string, error) {
	slices.Sort(names)
	names = slices.Compact(names)
	switch {
	case s.Score != "" && slices.Contains(names, s.Score):
		return s.Score, nil
	case s.Score != "" && len(names) == 0:
		return "", choiceErrorf("there is no %s %q: the results have none, leave out --%s", flag, s.Score, flag)
	case s.Score != "":
		return "", choiceErrorf("there is no %s %q; there are %s", flag, s.Score, strings.Join(names, ", "))
	case len(names) == 1:
		return names[0], nil
	case len(names) == 0:
		return "", choiceErrorf("there is no score at all")
	}
	return "", choiceErrorf("there are several scores: %s; choose one with --%s %s", strings.Join(names, ", "), flag,
		names[0])
}

// ChoiceError reports that the user must say, or say otherwise, what is read of a source.
type ChoiceError struct{ reason string }

func (e *ChoiceError) Error() string { return e.reason }

func choiceErrorf(format string, args ...any) error {
	return &ChoiceError{fmt.Sprintf(format, args...)}
}
