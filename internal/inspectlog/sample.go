package inspectlog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/fit-eval/fit/internal/jsondoc"
)

// Split takes the name of a sample, LOG:SAMPLE, apart. The name of a log itself has no sample. It
// returns no log where there is none, as for the path of any other file.
func Split(name string) (log, sample string) {
	if _, err := os.Stat(name); err == nil {
		if Is(name) {
			return name, ""
		}
		return "", ""
	}
	for at := range len(name) {
		if name[at] == ':' && Is(name[:at]) {
			return name[:at], name[at+1:]
		}
	}
	return "", ""
}

// Sample returns a sample of a log, as one line. Without a name it returns the only one.
func Sample(log, name string) ([]byte, error) {
	find := inDocument
	if isArchive(headOf(log)) {
		find = inArchive
	}
	names, found, err := find(log, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", log, err)
	case len(names) == 0:
		return nil, fmt.Errorf("%s: there are no samples in the log", log)
	case found == nil && name == "":
		return nil, fmt.Errorf("%s is a log of %d samples; choose one, e.g. '%s:%s'", log, len(names), log, names[0])
	case found == nil:
		return nil, fmt.Errorf("%s: there is no sample %q in the log; it has %s", log, name,
			strings.Join(names[:min(len(names), maxShown)], ", "))
	}
	return jsondoc.Compact(found)
}

// maxShown bounds the samples that an error names.
const maxShown = 3

// inArchive finds a sample, and unpacks no other.
func inArchive(log, name string) (names []string, found []byte, err error) {
	opened, err := openArchive(log)
	if err != nil {
		return nil, nil, err
	}
	defer opened.Close()
	for _, member := range opened.File {
		if isSample(member.Name) {
			names = append(names, member.Name)
		}
	}
	if name == "" && len(names) == 1 {
		name = names[0]
	}
	if isSample(name) {
		err = opened.show(name, func(text []byte) error {
			found = text
			return nil
		})
	}
	return names, found, err
}

// errFound ends the reading of a document.
var errFound = errors.New("found")

func inDocument(log, name string) (names []string, found []byte, err error) {
	err = readDocument(log, Parts{
		Header:     func([]byte, bool, int) error { return nil },
		Reductions: func([]byte) error { return nil },
		Sample: func(at string, text []byte) error {
			names = append(names, at)
			if at == name {
				found = bytes.Clone(text)
				return errFound
			}
			if found = nil; name == "" && len(names) == 1 {
				found = bytes.Clone(text)
			}
			return nil
		},
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return names, found, err
}
