package grade

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"

	"github.com/fit-eval/fit/internal/display"
)

// recordMark begins a line of a reporter of ours.
const recordMark = "\x1efit "

// spareSecrets is the number of secrets for tests whose names are not known.
const spareSecrets = 2000

// pads are the one-time secrets of one run of a test file. A reporter gives a secret away only when
// its test has passed, so output alone proves nothing, and a secret that was seen is useless for
// another test.
type pads struct {
	Names map[string][]string `json:"names"`
	Spare []string            `json:"spare"`
	Done  string              `json:"done"`
	// Loaded is the secret of a reporter that says when the test file was loaded to its end; empty
	// for one that does not.
	Loaded string `json:"loaded,omitempty"`
	// Files are the paths in which a test must be defined to count.
	Files []string `json:"files"`
}

func newPads(names []string) pads {
	p := pads{
		Names: map[string][]string{},
		Spare: []string{},
		Done:  secret(),
		Files: []string{},
	}
	for _, name := range names {
		p.Names[name] = append(p.Names[name], secret())
	}
	if len(names) == 0 {
		for range spareSecrets {
			p.Spare = append(p.Spare, secret())
		}
	}
	return p
}

// secret is 128 random bits.
func secret() string {
	var random [16]byte
	// Read never fails on the systems we run on; the library ends the program otherwise.
	_, _ = rand.Read(random[:])
	return hex.EncodeToString(random[:])
}

// witness reads the records of a reporter out of everything that a process prints.
type witness struct {
	report testReport
	unused map[string]string // from secret to the name it belongs to, empty for a spare one
	done   string
	loaded string // empty once the file was loaded
	line   []byte
	skip   bool // the rest of a line that is too long
}

func newWitness(p pads) *witness {
	w := &witness{unused: map[string]string{}, done: p.Done, loaded: p.Loaded}
	for name, list := range p.Names {
		for _, pad := range list {
			w.unused[pad] = name
		}
	}
	for _, pad := range p.Spare {
		w.unused[pad] = ""
	}
	return w
}

// Write implements io.Writer; it never fails.
func (w *witness) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			w.collect(p)
			break
		}
		w.collect(p[:end])
		if !w.skip {
			w.read(w.line)
		}
		w.line, w.skip = w.line[:0], false
		p = p[end+1:]
	}
	return n, nil
}

func (w *witness) collect(part []byte) {
	if w.skip || len(w.line)+len(part) > maxRowBytes {
		w.line, w.skip = w.line[:0], true
		return
	}
	w.line = append(w.line, part...)
}

// read reads one line; lines without the mark are the program's own output.
func (w *witness) read(line []byte) {
	rest, ok := bytes.CutPrefix(line, []byte(recordMark))
	if !ok {
		return
	}
	var record struct {
		Status, Name, Pad, Message string
		Suite                      bool
	}
	if json.Unmarshal(rest, &record) != nil {
		w.report.problem("the report was forged")
		return
	}
	if w.report.Complete {
		w.report.problem("the report continues after its end")
		return
	}
	switch record.Status {
	case "pass":
		w.pass(record.Name, record.Pad)
	case "fail":
		w.report.add(record.Name, testFailed, record.Message)
		w.report.lastIsSuite(record.Suite)
	case "skip":
		w.report.add(record.Name, testSkipped, record.Message)
	case "todo":
		w.report.add(record.Name, testTodo, record.Message)
	case "extra":
	case "again":
		w.report.problem("the test %q was reported more than once", display.FirstBytes(record.Name, maxRaw))
	case "loaded":
		if record.Pad != w.loaded {
			w.report.problem("the report was forged")
		}
		w.loaded = ""
	case "done":
		switch {
		case record.Pad != w.done:
			w.report.problem("the report was forged")
		case w.loaded != "":
			w.report.problem("the test file was not fully loaded")
		default:
			w.report.Complete = true
		}
	default:
		w.report.problem("the report was forged")
	}
}

func (w *witness) pass(name, pad string) {
	owner, ok := w.unused[pad]
	if !ok || owner != "" && owner != name {
		w.report.problem("the report was forged")
		return
	}
	delete(w.unused, pad)
	w.report.add(name, testPassed, "")
}
