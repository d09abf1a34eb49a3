package foreign

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/jsondoc"
	"github.com/fit-eval/fit/ledger"
)

// tableReader reads CSV and JSON lines: a row is a run.
var tableReader = reader{format: FormatTable, finds: findTable, read: readTable}

// Columns are what a column of a table may hold.
var Columns = []string{
	"task", "arm", "run", "pass", "score", "error", "cost_usd", "input_tokens", "output_tokens", "seconds",
	"agent_seconds", "agent", "model", "content",
}

// maxRow bounds a row of a table.
const maxRow = 16 << 20

func findTable(path string, info os.FileInfo) []string {
	if head := headOf(path); !info.Mode().IsRegular() || !utf8.Valid(head[:max(0, len(head)-utf8.UTFMax)]) ||
		bytes.IndexByte(head, 0) >= 0 || len(bytes.TrimSpace(head)) == 0 {
		return nil
	}
	head := bytes.TrimSpace(headOf(path))
	line, _, more := bytes.Cut(head, []byte("\n"))
	if bytes.HasPrefix(head, []byte("[")) || bytes.HasPrefix(head, []byte("{")) && more && !json.Valid(line) {
		return nil // another document
	}
	return []string{path}
}

// headOf returns the beginning of a file.
func headOf(path string) []byte {
	file, err := open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	head := make([]byte, 64<<10)
	n, _ := io.ReadFull(file, head) // less is enough
	return bytes.TrimPrefix(head[:n], []byte("\ufeff"))
}

func readTable(s *source, path string) error {
	file, err := open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 64<<10)
	if start, _ := in.Peek(3); string(start) == "\ufeff" {
		_, _ = in.Discard(3)
	}
	t := &table{source: s, arm: label(path), column: map[string]string{}}
	for _, what := range Columns {
		t.column[what] = what
	}
	for what, name := range s.Columns {
		if !slices.Contains(Columns, what) {
			return choiceErrorf("a table has no %q; its columns are %s", what, strings.Join(Columns, ", "))
		}
		t.column[what] = name
	}
	if head := bytes.TrimSpace(headOf(path)); bytes.HasPrefix(head, []byte("{")) {
		return t.lines(in)
	}
	return t.csv(in)
}

// table is a table that is being read.
type table struct {
	*source
	arm    string
	column map[string]string // the name of the column, by what it holds
}

func (t *table) csv(in *bufio.Reader) error {
	first, _ := in.Peek(in.Size()) // less is enough
	line, _, _ := bytes.Cut(first, []byte("\n"))
	rows := csv.NewReader(in)
	for _, comma := range []byte{'\t', ';'} {
		if bytes.Count(line, []byte{comma}) > bytes.Count(line, []byte{byte(rows.Comma)}) {
			rows.Comma = rune(comma)
		}
	}
	header, err := rows.Read()
	if err != nil {
		return err
	}
	at := map[string]int{}
	for i, name := range header {
		if _, twice := at[strings.TrimSpace(name)]; twice {
			return fmt.Errorf("two columns are called %q", name)
		}
		at[strings.TrimSpace(name)] = i
	}
	if err := t.check(func(name string) bool { _, there := at[name]; return there }, header); err != nil {
		return err
	}
	rows.ReuseRecord, rows.FieldsPerRecord = true, -1 // our own words say more
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		number, _ := rows.FieldPos(0)
		if len(row) != len(header) {
			return wrongFields(number, len(header), len(row), rows.Comma)
		}
		err = t.row(func(name string) string {
			if i, there := at[name]; there {
				return strings.TrimSpace(row[i])
			}
			return ""
		})
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
}

func wrongFields(line, want, have int, comma rune) error {
	hint := ""
	if have > want && comma == ',' {
		hint = `: is there a comma in a cell? Write the cell in quotes, and a decimal comma as a point`
	}
	return fmt.Errorf("line %d has %d fields, and the header has %d%s", line, have, want, hint)
}

// lines reads JSON lines.
func (t *table) lines(in io.Reader) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, maxRow)
	checked := false
	for number := 1; scanner.Scan(); number++ {
		if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
			continue
		}
		var row map[string]json.RawMessage
		if err := jsondoc.Decode(scanner.Bytes(), &row); err != nil {
			return fmt.Errorf("line %d is no JSON object: %w", number, err)
		}
		if !checked { // later rows may lack what they do not know
			var names []string
			for name := range row {
				names = append(names, name)
			}
			slices.Sort(names)
			if err := t.check(func(name string) bool { return row[name] != nil }, names); err != nil {
				return err
			}
			checked = true
		}
		if err := t.row(func(name string) string { return cellOf(row[name]) }); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	return tooLong(scanner)
}

// tooLong returns the error that ended a scan, in words that users know.
func tooLong(scanner *bufio.Scanner) error {
	if errors.Is(scanner.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("a line is longer than %d bytes", maxRow)
	}
	return scanner.Err()
}

// cellOf is a JSON value as a cell of a table.
func cellOf(raw json.RawMessage) string {
	var text string
	switch {
	case raw == nil, string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &text) == nil:
		return strings.TrimSpace(text)
	}
	return string(raw)
}

// check looks for the columns that a table cannot do without.
func (t *table) check(has func(name string) bool, names []string) error {
	for what, name := range t.Columns {
		if !has(name) {
			return choiceErrorf("there is no column %q for %s; there are %s", name, what, strings.Join(names, ", "))
		}
	}
	if !has(t.column["task"]) || !has(t.column["pass"]) && !has(t.column["score"]) {
		return choiceErrorf("a table needs a column task, and pass or score; it has %s: name them with --columns "+
			"task=NAME,pass=NAME", strings.Join(names, ", "))
	}
	return nil
}

// row adds the run of a row.
func (t *table) row(named func(column string) string) error {
	cell := func(what string) string { return named(t.column[what]) }
	r := run{
		task:  cell("task"),
		arm:   cell("arm"),
		agent: cell("agent"),
		index: -1,
	}
	r.model = cell("model")
	if r.arm == "" {
		r.arm = t.arm
	}
	if content := cell("content"); content != "" {
		r.content = contentOf([]byte(content))
	}
	if r.task == "" {
		return errors.New("the row names no task")
	}
	if run := cell("run"); run != "" {
		n, err := strconv.Atoi(run)
		if err != nil || n < 0 || n >= maxRuns {
			return fmt.Errorf("run %q is not a number from 0 on, below %d", run, maxRuns)
		}
		r.index = n
	}
	if err := t.measured(&r, cell); err != nil {
		return err
	}
	if err := t.outcome(&r, cell("pass"), cell("score"), cell("error")); err != nil {
		return err
	}
	return t.add(r)
}

// measured fills in what a run took.
func (t *table) measured(r *run, cell func(string) string) error {
	var input, output, seconds, agent *float64
	for what, into := range map[string]**float64{
		"cost_usd":      &r.cost,
		"input_tokens":  &input,
		"output_tokens": &output,
		"seconds":       &seconds,
		"agent_seconds": &agent,
	} {
		text := cell(what)
		if unknown(text) {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil || !(value >= 0 && value <= maxAmount) {
			return fmt.Errorf("%s %q is not a number from 0 on%s", what, text, decimalComma(text))
		}
		*into = &value
	}
	if input != nil && output != nil {
		r.tokens = &ledger.UsageJSON{InputTokens: int64(*input), OutputTokens: int64(*output)}
	}
	if seconds != nil {
		r.duration = millis(*seconds)
	}
	if agent != nil {
		r.agentTook(millis(*agent))
	}
	return nil
}

// decimalComma is the way out for a number with a comma. What it stands for is not guessed: it
// groups thousands elsewhere.
func decimalComma(text string) string {
	if point := strings.Replace(text, ",", ".", 1); point != text {
		if _, err := strconv.ParseFloat(point, 64); err == nil {
			return fmt.Sprintf(": if the comma is a decimal one, write %s", point)
		}
	}
	return ""
}

// maxAmount is more than anything that is measured; what is above it would overflow.
const maxAmount = 1e15

// outcome fills in what came out. An error is never a failed task.
func (t *table) outcome(r *run, pass, score, wrong string) error {
	switch strings.ToLower(wrong) {
	case "", "false", "0", "no", "none", "null":
	default:
		failed(r, wrong)
		return nil
	}
	if !unknown(score) {
		value, err := strconv.ParseFloat(score, 64)
		if err != nil {
			return fmt.Errorf("score %q is not a number%s", score, decimalComma(score))
		}
		if err := t.scored(r, value, unknown(pass)); err != nil {
			return err
		}
	}
	switch word := strings.ToLower(pass); {
	case unknown(pass):
		if unknown(score) {
			failed(r, "the row has no outcome")
		}
	case word == "error", word == "errored", word == "missing", word == "skipped":
		failed(r, "the table says "+pass)
		return nil
	default:
		value, ok := truthOf(pass)
		if !ok {
			return fmt.Errorf("pass %q is neither pass nor fail nor error; a number between them is a score%s", pass,
				decimalComma(pass))
		}
		outcome(r, value)
	}
	return nil
}

// unknown reports whether a cell says that nothing is known, as harnesses and tables write it.
func unknown(cell string) bool {
	switch strings.ToLower(cell) {
	case "", "-", "na", "n/a", "nan", "none", "null", "<na>":
		return true
	}
	return false
}

// truthOf reads whether something passed, in the words that harnesses use.
func truthOf(text string) (value, ok bool) {
	switch strings.ToLower(text) {
	case "1", "1.0", "true", "pass", "passed", "yes", "y", "ok", "success", "succeeded", "resolved", "c", "correct":
		return true, true
	case "0", "0.0", "false", "fail", "failed", "no", "n", "unresolved", "i", "incorrect":
		return false, true
	}
	return false, false
}
