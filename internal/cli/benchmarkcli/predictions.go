package benchmarkcli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/document"
)

// prediction is a patch that somebody's model made for a task of SWE-bench.
type prediction struct {
	InstanceID string  `json:"instance_id"`
	Model      string  `json:"model_name_or_path"`
	Patch      *string `json:"model_patch"`
	line       int
}

// empty reports whether there is nothing to grade.
func (p *prediction) empty() bool { return p.Patch == nil || strings.TrimSpace(*p.Patch) == "" }

// maxPredictions bounds a file of predictions.
const maxPredictions = 1 << 30

// predictionReader reads predictions: one JSON object per line, or one JSON list, or one JSON
// object that has them by the names of their tasks.
type predictionReader struct {
	name string
	all  []prediction
	seen map[string]int // lines by id
}

// readPredictions reads a file of predictions. Every task has at most one.
func readPredictions(con *console.Console, name string) ([]prediction, error) {
	info, err := os.Stat(con.Path(name))
	if err != nil {
		return nil, console.Exit(console.ExitUsage, fmt.Errorf("--predictions: %w", err))
	}
	if !info.Mode().IsRegular() || info.Size() > maxPredictions {
		return nil, console.Usagef("--predictions: %s is not a file of at most %d bytes", name, maxPredictions)
	}
	content, err := os.ReadFile(con.Path(name))
	if err != nil {
		return nil, console.Exit(console.ExitUsage, fmt.Errorf("--predictions: %w", err))
	}
	content = bytes.TrimPrefix(content, []byte("\uFEFF"))
	r := &predictionReader{name: name, seen: map[string]int{}}
	if strings.EqualFold(filepath.Ext(name), ".json") {
		err = r.document(content)
	} else {
		err = r.lines(content)
	}
	if err == nil && len(r.all) == 0 {
		err = &document.Error{File: name, Msg: "it has no predictions"}
	}
	if err != nil {
		return nil, console.Exit(console.ExitUsage, err)
	}
	return r.all, nil
}

func (r *predictionReader) wrong(line int, format string, args ...any) error {
	return &document.Error{File: r.name, Line: line, Msg: fmt.Sprintf(format, args...)}
}

func (r *predictionReader) lines(content []byte) error {
	number := 0
	for line := range bytes.Lines(content) {
		number++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := r.add(number, line, ""); err != nil {
			return err
		}
	}
	return nil
}

// document reads a list or an object. Lines are counted from one element to the next.
func (r *predictionReader) document(content []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(content))
	line, counted := 1, int64(0)
	here := func() int {
		at := decoder.InputOffset()
		line += bytes.Count(content[counted:at], []byte("\n"))
		counted = at
		return line
	}
	open, err := decoder.Token()
	if err != nil || open != json.Delim('[') && open != json.Delim('{') {
		return r.wrong(1, "must be a JSON list of predictions, or an object of them; one per line is a .jsonl file")
	}
	for decoder.More() {
		id := ""
		if open == json.Delim('{') {
			key, err := decoder.Token()
			if err != nil {
				return r.wrong(here(), "%s", document.SyntaxWords(err))
			}
			id = fmt.Sprint(key)
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return r.wrong(here(), "%v", err)
		}
		if err := r.add(here(), raw, id); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return r.wrong(here(), "the list is not closed: %s", document.SyntaxWords(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return r.wrong(here(), "there is more after the list")
	}
	return nil
}

// add reads one prediction; id is the name that the file has it by, if any.
func (r *predictionReader) add(line int, raw []byte, id string) error {
	p := prediction{InstanceID: id, line: line}
	err := json.Unmarshal(raw, &p)
	switch kind, ok := errors.AsType[*json.UnmarshalTypeError](err); {
	case ok && kind.Field != "":
		return r.wrong(line, "%s: must be text, not %s", kind.Field, kind.Value)
	case ok:
		return r.wrong(line, "must be an object with instance_id, model_name_or_path and model_patch, not "+
			"%s", kind.Value)
	case err != nil:
		return r.wrong(line, "must be an object with instance_id, model_name_or_path and model_patch: %s",
			document.SyntaxWords(err))
	case p.InstanceID == "":
		return r.wrong(line, "instance_id is missing")
	case id != "" && id != p.InstanceID:
		return r.wrong(line, "instance_id: it is %s, but the file has it as %s", p.InstanceID, id)
	case !bytes.Contains(raw, []byte(`"model_patch"`)):
		return r.wrong(line, "model_patch is missing; one that is empty or null is counted and not run")
	}
	if before, twice := r.seen[p.InstanceID]; twice {
		return r.wrong(line, "instance_id: %s is also that of line %d; a file has one prediction for each task",
			p.InstanceID, before)
	}
	r.seen[p.InstanceID] = line
	r.all = append(r.all, p)
	return nil
}
