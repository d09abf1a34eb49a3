package foreign

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/internal/inspectlog"
	"github.com/fit-eval/fit/internal/jsondoc"
)

// Traces shows the trace of each run that has one, as one line. Runs are those that Read has
// returned for the path.
func Traces(path string, all *Runs, see func(i int, line []byte) error) error {
	dir := path
	if info, err := os.Stat(path); err != nil {
		return err
	} else if !info.IsDir() {
		dir = filepath.Dir(path)
	}
	samples := map[string]int{} // by the name of their trace
	var logs []string
	for i := range all.list {
		r := &all.list[i]
		switch {
		case r.trace == "":
		case r.from.Format != inspectReader.format:
			content, err := readBounded(filepath.Join(dir, r.trace))
			if err == nil {
				err = seeLine(i, content, see)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", r.trace, err)
			}
		default:
			samples[r.trace] = i
			if len(logs) == 0 || logs[len(logs)-1] != r.from.File {
				logs = append(logs, r.from.File)
			}
		}
	}
	for _, log := range logs {
		err := inspectlog.Read(filepath.Join(dir, log), inspectlog.Parts{
			Header:     func([]byte, bool, int) error { return nil },
			Reductions: func([]byte) error { return nil },
			Sample: func(name string, text []byte) error {
				if i, known := samples[sampleName(log, name)]; known {
					return seeLine(i, text, see)
				}
				return nil
			},
		})
		if err != nil {
			return fmt.Errorf("%s: %w", log, err)
		}
	}
	return nil
}

// sampleName is how a sample of a log is opened.
func sampleName(log, sample string) string { return log + ":" + sample }

func seeLine(i int, text []byte, see func(i int, line []byte) error) error {
	line, err := jsondoc.Compact(text)
	if err != nil {
		return err
	}
	return see(i, append(line, '\n'))
}
