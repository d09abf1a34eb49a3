package foreign

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/internal/inspectlog"
	"github.com/fit-eval/fit/internal/jsondoc"
	"github.com/fit-eval/fit/ledger"
)

// Traces shows the trace of each record that has one, as one line. Records are those that Read has
// returned for the path.
func Traces(path string, records []ledger.Record, see func(r *ledger.Record, line []byte) error) error {
	dir := path
	if info, err := os.Stat(path); err != nil {
		return err
	} else if !info.IsDir() {
		dir = filepath.Dir(path)
	}
	samples := map[string]*ledger.Record{} // by the name of their trace
	var logs []string
	for i := range records {
		r := &records[i]
		switch {
		case r.AgentTracePath == "":
		case r.Imported.Format != inspectReader.format:
			content, err := readBounded(filepath.Join(dir, r.AgentTracePath))
			if err == nil {
				err = seeLine(r, content, see)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", r.AgentTracePath, err)
			}
		default:
			samples[r.AgentTracePath] = r
			if len(logs) == 0 || logs[len(logs)-1] != r.Imported.File {
				logs = append(logs, r.Imported.File)
			}
		}
	}
	for _, log := range logs {
		err := inspectlog.Read(filepath.Join(dir, log), inspectlog.Parts{
			Header:     func([]byte, bool, int) error { return nil },
			Reductions: func([]byte) error { return nil },
			Sample: func(name string, text []byte) error {
				if r := samples[sampleName(log, name)]; r != nil {
					return seeLine(r, text, see)
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

func seeLine(r *ledger.Record, text []byte, see func(r *ledger.Record, line []byte) error) error {
	line, err := jsondoc.Compact(text)
	if err != nil {
		return err
	}
	return see(r, append(line, '\n'))
}
