package grade

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/display"
)

// The bounds of what one hook may report. A hook that passes them is not healthy.
const (
	maxRows     = 10_000
	maxRowBytes = 64 << 10
	maxRowsSize = 8 << 20
)

// Role says how a row counts.
type Role int

// The roles of rows.
const (
	// Malformed rows count as failed checks: an unreadable report proves nothing.
	Malformed Role = iota
	// Gate rows have no weight; a failed one fails the whole attempt.
	Gate
	// Scored rows add their weight to the score.
	Scored
	// Diagnostic rows are for people and count nothing.
	Diagnostic
)

// String names the role.
func (r Role) String() string {
	switch r {
	case Gate:
		return "gate"
	case Scored:
		return "scored"
	case Diagnostic:
		return "diagnostic"
	}
	return "malformed"
}

// Row is one check as a grader reported it.
type Row struct {
	Role Role
	// Name is the row's test, empty if it has none.
	Name string
	Pass bool
	// Weight is 1 where the row does not say otherwise; a malformed row keeps its own if that is a
	// valid one.
	Weight float64
	// Share is how much of its weight a scored row of ours gives; nil: all if it passes, else
	// nothing.
	Share *float64
	// Raw is the row as it was written, or the replacement of a line that is not JSON.
	Raw json.RawMessage
}

// parseRows reads NDJSON from a hostile writer. Blank lines are dropped; a line that is not JSON,
// or too long, becomes a malformed row that says so. The last line may lack its end.
func parseRows(data []byte) []Row {
	var rows []Row
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if len(rows) == maxRows {
			break
		}
		rows = append(rows, parseRow(line))
	}
	return rows
}

func parseRow(line []byte) Row {
	if len(line) > maxRowBytes {
		return unreadable(display.CutBytes(string(line), 256))
	}
	if !utf8.Valid(line) {
		line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
	}
	if !json.Valid(line) {
		return unreadable(string(line))
	}
	return Classify(bytes.Clone(line))
}

func unreadable(line string) Row {
	raw, err := json.Marshal(struct {
		Raw        string `json:"raw"`
		ParseError bool   `json:"parseError"`
	}{strings.ToValidUTF8(line, "\uFFFD"), true})
	if err != nil {
		raw = []byte(`{"parseError":true}`)
	}
	return Row{Role: Malformed, Weight: 1, Raw: raw}
}

// Classify decides what a row counts as. The first rule that fits wins: what is not an object is
// malformed; a row with a gate is a gate if the gate is true, there is no weight and pass is a
// boolean; a row with the weight 0 is diagnostic; a row with a positive weight, or none, is scored
// if pass is a boolean.
func Classify(raw json.RawMessage) Row {
	row := Row{Role: Malformed, Weight: 1, Raw: raw}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return row
	}
	row.Name, _ = text(fields["test"])
	pass, passIsBoolean := boolean(fields["pass"])
	weight, hasWeight := fields["weight"]
	number, isNumber := finite(weight)
	if isNumber && number > 0 {
		row.Weight = number
	}
	if gate, ok := fields["gate"]; ok {
		if isTrue, isBoolean := boolean(gate); isBoolean && isTrue && !hasWeight && passIsBoolean {
			row.Role, row.Pass = Gate, pass
		}
		return row
	}
	switch {
	case hasWeight && isNumber && number == 0:
		row.Role, row.Pass, row.Weight = Diagnostic, pass, 0
	case hasWeight && (!isNumber || number < 0) || !passIsBoolean:
	default:
		row.Role, row.Pass = Scored, pass
	}
	return row
}

func boolean(raw json.RawMessage) (value, ok bool) {
	switch string(raw) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}

func finite(raw json.RawMessage) (float64, bool) {
	if len(raw) == 0 || raw[0] == '"' || raw[0] == 'n' {
		return 0, false
	}
	var number float64
	if json.Unmarshal(raw, &number) != nil || math.IsInf(number, 0) || math.IsNaN(number) {
		return 0, false
	}
	return number, true
}

func text(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var value string
	return value, json.Unmarshal(raw, &value) == nil
}

// The sources that rows are stamped with.
const (
	sourceInvariants = "invariants"
	sourceTests      = "tests"
)

// stamp writes the row's source into it, in place of one that its author may have written. A row
// that is not an object stays as it is.
func stamp(row Row, source string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(row.Raw, &fields) != nil || fields == nil {
		return row.Raw
	}
	fields["source"] = json.RawMessage(`"` + source + `"`)
	stamped, err := json.Marshal(fields)
	if err != nil {
		return row.Raw
	}
	return stamped
}

// compareRows checks all rows of a grader together. Rows that contradict each other, and those that
// a hook was not declared to produce or produces again, fail: another program wrote one of them. A
// declared row of weight 0 would count nothing, so it fails, too. It returns what was wrong, one
// sentence each, and the declared checks that are missing.
func compareRows(rows []Row, declared []string) (wrong, missing []string) {
	passes, fails, uncounted := map[string]int{}, map[string]int{}, map[string]bool{}
	for _, row := range rows {
		switch {
		case row.Name == "" || row.Role == Malformed:
		case row.Role == Diagnostic:
			uncounted[row.Name] = true
		case row.Pass:
			passes[row.Name]++
		default:
			fails[row.Name]++
		}
	}
	expected := map[string]bool{}
	for _, name := range declared {
		expected[name] = true
		if passes[name]+fails[name] == 0 && !uncounted[name] {
			missing = append(missing, name)
		}
	}
	said := map[string]bool{}
	say := func(sentence string) {
		if !said[sentence] && len(wrong) < 10 {
			said[sentence] = true
			wrong = append(wrong, sentence)
		}
	}
	for i := range rows {
		row := &rows[i]
		if row.Role == Malformed || row.Role == Diagnostic && !expected[row.Name] {
			continue
		}
		name := display.CutBytes(row.Name, 100)
		switch {
		case row.Role == Diagnostic:
			row.Weight = 1
			say("the check " + name + " is declared and was reported with the weight 0, so it would count nothing")
		case row.Name != "" && passes[row.Name] > 0 && fails[row.Name] > 0:
			say("the check " + name + " was reported as passed and as failed")
		case len(declared) > 0 && !expected[row.Name]:
			say("the check " + name + " is not declared")
		case len(declared) > 0 && passes[row.Name]+fails[row.Name] > 1:
			say("the check " + name + " was reported more than once")
		default:
			continue
		}
		// A gate stays a gate, because as a malformed row it would cost less than a failure.
		if row.Pass = false; row.Role != Gate {
			row.Role = Malformed
		}
	}
	return wrong, missing
}
