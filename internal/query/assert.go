package query

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"strings"

	jmespath "github.com/jmespath-community/go-jmespath"

	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/trace"
)

// Assertion is one check of a file, made by a grader.
type Assertion struct {
	Test string
	File string
	// Exactly one of the following four is set.
	Grep     *string // a regular expression that must match; case does not matter, ^ and $ match at lines
	Query    *string // a JMESPath expression that must give something
	Exists   bool    // the file must exist
	CitesJob *string // the file must cite the job that this file describes

	Not     bool // the check must fail
	Unwrap  bool // look at the events of a trace instead of its envelopes
	Message string
	// Role of the row: a gate, or a weight; neither is a plain row.
	Gate   bool
	Weight *float64
}

// Row is the outcome of an assertion, in the form that graders collect.
type Row struct {
	Test    string
	Pass    bool
	Message string
	Gate    bool
	Weight  *float64
	// Failed is set when the check could not be made at all.
	Failed error
}

// MarshalJSON writes the row: the role follows the message, but precedes it when the check could
// not be made.
func (r Row) MarshalJSON() ([]byte, error) {
	dst := append([]byte(`{"test":`), jsonenc.AppendString(nil, r.Test)...)
	dst = append(dst, fmt.Sprintf(`,"pass":%t`, r.Pass)...)
	if r.Message != "" && r.Failed == nil {
		dst = appendField(dst, "message", r.Message)
	}
	switch {
	case r.Gate:
		dst = append(dst, `,"gate":true`...)
	case r.Weight != nil:
		dst = jsonenc.AppendNumber(append(dst, `,"weight":`...), *r.Weight)
	}
	if r.Failed != nil {
		dst = appendField(dst, "message", r.Message)
	}
	return append(dst, '}'), nil
}

// FailedRow returns the row of an assertion that could not be evaluated.
func (a Assertion) FailedRow(err error) Row {
	return Row{
		Test:    a.Test,
		Message: "assert: " + err.Error(),
		Failed:  err,
		Gate:    a.Gate,
		Weight:  a.Weight,
	}
}

// Check evaluates the assertion. There is always a row.
func (a Assertion) Check() Row {
	if err := a.validate(); err != nil {
		return a.FailedRow(err)
	}
	held, why, err := a.evaluate()
	if err != nil {
		return a.FailedRow(err)
	}
	row := Row{
		Test:   a.Test,
		Pass:   held != a.Not,
		Gate:   a.Gate,
		Weight: a.Weight,
	}
	if row.Pass {
		return row
	}
	row.Message = why
	if a.Not {
		row.Message = fmt.Sprintf("the check holds for %s, but must not", filepath.Base(a.File))
	}
	if a.Message != "" {
		row.Message = a.Message
	}
	return row
}

func (a Assertion) validate() error {
	modes := 0
	for _, set := range []bool{a.Grep != nil, a.Query != nil, a.Exists, a.CitesJob != nil} {
		if set {
			modes++
		}
	}
	switch {
	case a.Test == "":
		return errors.New("the name of the test is missing")
	case a.File == "":
		return errors.New("the file to check is missing: name the test and the file")
	case modes != 1:
		return fmt.Errorf("exactly one of --grep, --query, --exists and --cites-job is needed, not %d", modes)
	case a.Grep != nil && *a.Grep == "":
		return errors.New("--grep needs a pattern that is not empty")
	}
	return nil
}

// evaluate reports whether the check holds, and what to say if it does not.
func (a Assertion) evaluate() (held bool, why string, err error) {
	base := filepath.Base(a.File)
	switch {
	case a.Exists:
		_, err := os.Stat(a.File)
		return err == nil, base + " does not exist", nil
	case a.Grep != nil:
		return a.grep(base)
	case a.CitesJob != nil:
		return a.citesJob(base)
	}
	value, err := a.query()
	return holds(value), fmt.Sprintf("query %q found nothing in %s", *a.Query, base), err
}

func (a Assertion) grep(base string) (bool, string, error) {
	expr, err := regexp.Compile("(?im)" + *a.Grep)
	if wrong, ok := errors.AsType[*syntax.Error](err); ok {
		return false, "", fmt.Errorf("pattern %q: %s", *a.Grep, wrong.Code)
	}
	content, err := readAll(a.File)
	if err != nil {
		return false, "", err
	}
	return expr.Match(content), fmt.Sprintf("pattern %q not found in %s", *a.Grep, base), nil
}

var jobTag = lazyregexp.New(`<job\s+user="([^"]*)"\s+goal="([^"]*)"`)

func (a Assertion) citesJob(base string) (bool, string, error) {
	jobs, err := readAll(*a.CitesJob)
	if err != nil {
		return false, "", err
	}
	tag := jobTag.Get().FindSubmatch(jobs)
	if tag == nil {
		return false, "", fmt.Errorf("%s has no <job user=… goal=…> tag", filepath.Base(*a.CitesJob))
	}
	content, err := readAll(a.File)
	if err != nil {
		return false, "", err
	}
	citation := string(tag[1]) + ": " + string(tag[2])
	return bytes.Contains(content, []byte(citation)), fmt.Sprintf("%s does not cite %q", base, citation), nil
}

func (a Assertion) query() (any, error) {
	content, err := readAll(a.File)
	if err != nil {
		return nil, err
	}
	data, err := parseLoose(content, a.Unwrap)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(a.File), err)
	}
	value, err := jmespath.Search(*a.Query, data)
	if err != nil {
		_, what, _ := strings.Cut(err.Error(), "SyntaxError: ") // that of a value names its function
		return nil, fmt.Errorf("query %q: %s; it is JMESPath", *a.Query, cmp.Or(what, err.Error()))
	}
	return value, nil
}

// parseLoose reads one JSON value, or the values of all lines that are JSON as an array.
func parseLoose(content []byte, unwrap bool) (any, error) {
	content = bytes.TrimPrefix(content, byteOrderMark)
	var whole any
	if json.Unmarshal(content, &whole) == nil {
		if unwrap {
			return []any{unwrapped(whole)}, nil
		}
		return whole, nil
	}
	lines := []any{}
	for line := range bytes.Lines(content) {
		var value any
		if json.Unmarshal(line, &value) != nil {
			continue
		}
		if unwrap {
			value = unwrapped(value)
		}
		lines = append(lines, value)
	}
	if len(lines) == 0 {
		return nil, errors.New("no JSON in this file")
	}
	return lines, nil
}

// unwrapped returns the event of an envelope with the lane added to it as "source".
func unwrapped(value any) any {
	envelope, ok := value.(map[string]any)
	if !ok {
		return value
	}
	event, hasEvent := envelope["event"].(map[string]any)
	source, hasSource := envelope["source"].(string)
	if !hasEvent || !hasSource || envelope["type"] != nil {
		return value
	}
	if _, taken := event["source"]; !taken {
		event["source"] = source
	}
	return event
}

// holds reports whether a JMESPath result counts as an answer: null, false and the empty array do
// not.
func holds(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		return v
	case []any:
		return len(v) > 0
	}
	return true
}

// maxSubject bounds what is checked as a whole.
const maxSubject = 1 << 30

func readAll(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unpacked, done, err := trace.Unpack(bufio.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer done()
	content, err := io.ReadAll(io.LimitReader(unpacked, maxSubject+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(content) > maxSubject {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxSubject)
	}
	return []byte(strings.ToValidUTF8(string(content), "\uFFFD")), nil
}
