package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/fit-eval/fit/internal/document"
)

// maxScriptSize bounds a script file.
const maxScriptSize = 32 << 20

// scriptError is a mistake in a script, with the place it was found at.
type scriptError struct {
	// Line is the line of the file, from 1, or 0 where it is unknown.
	Line int
	// Field is the path of the field, such as turns[2].calls[0].
	Field   string
	Message string
}

func (e *scriptError) Error() string {
	var place []string
	if e.Line > 0 {
		place = append(place, fmt.Sprintf("line %d", e.Line))
	}
	if e.Field != "" {
		place = append(place, e.Field)
	}
	return strings.Join(append(place, e.Message), ": ")
}

// Load reads a script file.
func Load(path string) (*Script, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open script: %w", err)
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxScriptSize+1))
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	script, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("script %s: %w", path, err)
	}
	return script, nil
}

// Parse reads and checks a script. Mistakes come back as *scriptError. A field that does not exist
// is a mistake, so that a misspelt one does not pass for an empty turn.
func Parse(data []byte) (*Script, error) {
	if len(data) > maxScriptSize {
		return nil, &scriptError{Message: "script is larger than 32 MiB"}
	}
	script := new(Script)
	if err := document.DecodeJSON("", data, script); err != nil {
		var mistake *document.Error
		if errors.As(err, &mistake) {
			return nil, &scriptError{Line: mistake.Line, Message: mistake.Msg}
		}
		return nil, err
	}
	if err := script.prepare(); err != nil {
		if mistake, ok := errors.AsType[*scriptError](err); ok {
			mistake.Line = lineAt(data, fieldOffset(data, mistake.Field))
		}
		return nil, err
	}
	return script, nil
}

// New checks a script that was built in Go and makes it ready to be served.
func New(script Script) (*Script, error) {
	s := script
	if err := s.prepare(); err != nil {
		return nil, err
	}
	return &s, nil
}

func lineAt(data []byte, offset int64) int {
	if offset < 0 {
		return 0
	}
	return 1 + bytes.Count(data[:min(offset, int64(len(data)))], []byte("\n"))
}

// fieldOffset finds where the value at a path such as turns[2].calls[0] begins, or -1.
func fieldOffset(data []byte, path string) int64 {
	dec := json.NewDecoder(bytes.NewReader(data))
	found := int64(-1)
	var walk func(at string) error
	walk = func(at string) error {
		token, err := dec.Token()
		if err != nil {
			return err
		}
		if at == path && found < 0 {
			found = dec.InputOffset()
		}
		switch token {
		case json.Delim('{'):
			for dec.More() {
				name, err := dec.Token()
				if err != nil {
					return err
				}
				if err := walk(strings.TrimPrefix(fmt.Sprintf("%s.%v", at, name), ".")); err != nil {
					return err
				}
			}
			_, err = dec.Token()
		case json.Delim('['):
			for i := 0; dec.More(); i++ {
				if err := walk(fmt.Sprintf("%s[%d]", at, i)); err != nil {
					return err
				}
			}
			_, err = dec.Token()
		}
		return err
	}
	if path == "" || walk("") != nil {
		return found
	}
	return found
}

func mistakeAt(field, format string, args ...any) error {
	return &scriptError{Field: field, Message: fmt.Sprintf(format, args...)}
}

// prepare checks the script and works out what serving it needs.
func (s *Script) prepare() error {
	if len(s.Turns) == 0 && len(s.Scenarios) == 0 {
		return &scriptError{Message: `the script has neither "turns" nor "scenarios"`}
	}
	for i, c := range s.Captures {
		if err := c.check(fmt.Sprintf("captures[%d]", i)); err != nil {
			return err
		}
	}
	s.all = nil
	names := map[string]bool{"main": len(s.Turns) > 0}
	for i := range s.Scenarios {
		sc, at := &s.Scenarios[i], fmt.Sprintf("scenarios[%d]", i)
		if sc.Name == "" || names[sc.Name] {
			return mistakeAt(at, "a scenario needs a name of its own")
		}
		names[sc.Name] = true
		if err := sc.When.check(at + ".when"); err != nil {
			return err
		}
		if err := sc.prepare(at + ".turns"); err != nil {
			return err
		}
		s.all = append(s.all, sc)
	}
	if len(s.Turns) > 0 {
		main := &Scenario{Name: "main", Turns: s.Turns}
		if err := main.prepare("turns"); err != nil {
			return err
		}
		s.all = append(s.all, main)
	}
	for at, turn := range map[string]*Turn{"end": s.End, "aux": s.Aux} {
		if turn == nil {
			continue
		}
		if err := turn.check(at, nil); err != nil {
			return err
		}
	}
	return nil
}

func (sc *Scenario) prepare(at string) error {
	if len(sc.Turns) == 0 {
		return mistakeAt(at, "there are no turns")
	}
	sc.labels = map[string]int{}
	for i, t := range sc.Turns {
		if t.Label == "" {
			continue
		}
		if _, taken := sc.labels[t.Label]; taken {
			return mistakeAt(fmt.Sprintf("%s[%d]", at, i), "label %q is taken", t.Label)
		}
		sc.labels[t.Label] = i
	}
	for i, t := range sc.Turns {
		if err := t.check(fmt.Sprintf("%s[%d]", at, i), sc.labels); err != nil {
			return err
		}
	}
	return nil
}

func (t Turn) check(at string, labels map[string]int) error {
	if !t.says() && len(t.Cases) == 0 {
		return mistakeAt(at, "the turn says nothing: give it text, calls, a stop reason, a fault, cases, choices or "+
			"a goto")
	}
	if t.Goto != "" {
		if _, ok := labels[t.Goto]; !ok {
			return mistakeAt(at+".goto", "no turn has the label %q", t.Goto)
		}
	}
	if t.DelayMs < 0 || t.ChunkDelayMs < 0 {
		return mistakeAt(at, "a delay is negative")
	}
	for i, call := range t.Calls {
		if err := call.check(fmt.Sprintf("%s.calls[%d]", at, i)); err != nil {
			return err
		}
	}
	if t.Fault != nil {
		if err := t.Fault.check(at + ".fault"); err != nil {
			return err
		}
	}
	for i, c := range t.Cases {
		where := fmt.Sprintf("%s.cases[%d]", at, i)
		if c.When.empty() {
			return mistakeAt(where, `a case needs a "when"`)
		}
		if err := c.When.check(where + ".when"); err != nil {
			return err
		}
		if err := c.check(where, labels); err != nil {
			return err
		}
	}
	for i, c := range t.Choices {
		where := fmt.Sprintf("%s.choices[%d]", at, i)
		if c.Weight < 0 {
			return mistakeAt(where+".weight", "a weight is negative")
		}
		if err := c.check(where, labels); err != nil {
			return err
		}
	}
	return nil
}

func (c Call) check(at string) error {
	verbs := c.verbs()
	if len(verbs) != 1 {
		return mistakeAt(at, "a call has one of bash, read, write, edit, glob, grep, mcp, tool and first_of, not %d",
			len(verbs))
	}
	verb := verbs[0]
	for _, extra := range []struct {
		name    string
		set     bool
		allowed string
	}{
		{"timeout_ms", c.TimeoutMs != 0, "bash"},
		{"content", c.Content != "", "write"},
		{"old", c.Old != "", "edit"},
		{"new", c.New != "", "edit"},
		{"in", c.In != "", "glob grep"},
		{"input", len(c.Input) > 0, "mcp tool"},
		{"raw", c.Raw != "", "tool"},
	} {
		if extra.set && !strings.Contains(" "+extra.allowed+" ", " "+verb+" ") {
			return mistakeAt(at, "%q does not go with %q", extra.name, verb)
		}
	}
	switch {
	case verb == "edit" && c.Old == "":
		return mistakeAt(at, `an edit needs "old"`)
	case verb == "mcp" && !strings.Contains(c.MCP, "/"):
		return mistakeAt(at+".mcp", "want server/tool, got %q", c.MCP)
	case len(c.Input) > 0 && c.Raw != "":
		return mistakeAt(at, `"input" and "raw" exclude each other`)
	case c.TimeoutMs < 0:
		return mistakeAt(at+".timeout_ms", "a timeout is negative")
	}
	for i, alternative := range c.FirstOf {
		if err := alternative.check(fmt.Sprintf("%s.first_of[%d]", at, i)); err != nil {
			return err
		}
	}
	return nil
}

func (c Cond) check(at string) error {
	for name, pattern := range c.patterns() {
		if expr, isRegex := strings.CutPrefix(pattern, regexPrefix); isRegex {
			if _, err := regexp.Compile(expr); err != nil {
				return mistakeAt(at+"."+name, "%v", err)
			}
		}
	}
	if c.Not != nil {
		if err := c.Not.check(at + ".not"); err != nil {
			return err
		}
	}
	for name, list := range map[string][]Cond{"any": c.Any, "all": c.All} {
		for i, condition := range list {
			if err := condition.check(fmt.Sprintf("%s.%s[%d]", at, name, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c Capture) check(at string) error {
	if c.Var == "" {
		return mistakeAt(at, `a capture needs a "var"`)
	}
	switch c.From {
	case "prompt", "first_prompt", "last_result", "results", "system":
	default:
		return mistakeAt(at+".from", "want prompt, first_prompt, last_result, results or system, got %q", c.From)
	}
	if _, err := regexp.Compile(c.Regex); err != nil {
		return mistakeAt(at+".regex", "%v", err)
	}
	return nil
}

func (f Fault) check(at string) error {
	switch f.Stream {
	case "", "cut", "end", "error", "hang", "drop":
	default:
		return mistakeAt(at+".stream", "want cut, end, error, hang or drop, got %q", f.Stream)
	}
	switch {
	case f.Status == 0 && f.Stream == "":
		return mistakeAt(at, `a fault needs a "status" or a "stream"`)
	case f.Status != 0 && f.Stream != "":
		return mistakeAt(at, `"status" and "stream" exclude each other`)
	case f.Status != 0 && (f.Status < 400 || f.Status > 599):
		return mistakeAt(at+".status", "want an error status from 400 to 599, got %d", f.Status)
	case f.Times < 0 || f.After < 0:
		return mistakeAt(at, "a count is negative")
	}
	return nil
}
