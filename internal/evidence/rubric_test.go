package evidence

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/patch"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// known are the facts about a diff, without a trace.
func known(task Task, record ledger.Record, diff string) *facts {
	f := &facts{
		task:    &task,
		record:  &record,
		patch:   patch.Parse([]byte(diff)),
		classes: newClassifier(&task),
		session: &session.EnrichedSession{},
		verify:  verifyOf(&record),
	}
	f.files = f.changes()
	return f
}

// resized is a diff of so many added lines in so many files.
func resized(lines, files int) string {
	var diff strings.Builder
	for i := range files {
		n := lines / files
		if i == 0 {
			n += lines % files
		}
		diff.WriteString(added("f"+string(rune('a'+i))+".go", strings.Split(strings.Repeat("x\n", n-1)+"x", "\n")...))
	}
	return diff.String()
}

func TestMinimalDiffVectors(t *testing.T) {
	task := Task{Reference: &Reference{MaxLines: 20, MaxFiles: 2}}
	for _, v := range []struct {
		lines, files int
		want         float64
	}{{20, 2, 1}, {50, 2, 0.65}, {80, 3, 0.25}, {200, 9, 0}} {
		same(t, "minimal diff", known(task, ledger.Record{}, resized(v.lines, v.files)).minimalDiff(), score(v.want))
	}
	uncounted := resized(20, 2) + added("go.sum", "a", "b") + added("a_test.go", "c") + added("vendor/v.go", "d")
	same(t, "with lock files, tests and vendored code", known(task, ledger.Record{}, uncounted).minimalDiff(), score(1))
	same(t, "without a reference", known(Task{}, ledger.Record{}, resized(20, 2)).minimalDiff(), nil)
	same(t, "cut", known(task, ledger.Record{}, resized(20, 2)+"# "+patch.CutNote+"\n").minimalDiff(), nil)
	large := resized(200, 9) + "# " + patch.CutNote + "\n"
	same(t, "large and cut", known(task, ledger.Record{}, large).minimalDiff(), score(0))
	same(t, "without a change", known(task, ledger.Record{}, "").minimalDiff(), nil)
}

func TestCodeQualityVectors(t *testing.T) {
	for violations, want := range map[int]float64{0: 1, 1: 0.75, 3: 0.5, 9: 0.25} {
		record := ledger.Record{Lint: &ledger.Lint{Before: 2, After: 2 + violations}}
		same(t, "code quality", known(Task{}, record, resized(1, 1)).codeQuality(), score(want))
	}
	linted := ledger.Record{Lint: &ledger.Lint{Before: 5, After: 1}}
	same(t, "fewer violations than before", known(Task{}, linted, resized(1, 1)).codeQuality(), score(1))
	debris := added("a.ts", "console.log(x)", "const y: any = 1", "const z = 2") + added("a.go", "fmt.Println(x)") +
		added("a.test.ts", "console.log(x)") + added("notes.md", "TODO")
	same(t, "debris", known(Task{}, linted, debris).codeQuality(), score(0.5))
	same(t, "debris without a linter", known(Task{}, ledger.Record{}, debris).codeQuality(), score(0.5))
	same(t, "nobody looked", known(Task{}, ledger.Record{}, resized(1, 1)).codeQuality(), nil)
	broken := ledger.Record{Lint: &ledger.Lint{Error: "not found", After: 3}}
	same(t, "a linter that did not start", known(Task{}, broken, resized(1, 1)).codeQuality(), nil)
}

func TestCorrectness(t *testing.T) {
	for name, v := range map[string]struct {
		record   ledger.Record
		critical bool
		want     *float64
	}{
		"passed":                 {ledger.Record{Verify: &ledger.Verify{Passed: true}}, false, score(1)},
		"failed":                 {ledger.Record{Verify: &ledger.Verify{ExitCode: 1}}, false, score(0)},
		"did not start":          {ledger.Record{Verify: &ledger.Verify{Error: "no sh"}}, false, nil},
		"none":                   {ledger.Record{}, false, nil},
		"the grade passed":       {ledger.Record{Grade: &ledger.Grade{Verdict: ledger.Pass}}, false, score(1)},
		"the grade is an error":  {ledger.Record{Grade: &ledger.Grade{Verdict: ledger.Error}}, false, nil},
		"passed by manipulation": {ledger.Record{Verify: &ledger.Verify{Passed: true}}, true, score(0)},
	} {
		t.Run(name, func(t *testing.T) {
			f := known(Task{}, v.record, "")
			f.critical = v.critical
			same(t, name, f.correctness(), v.want)
		})
	}
}

func TestVerification(t *testing.T) {
	edit, pass, fail := act{tool: "edit", arg: "a.go"}, bash("go test ./..."), act{
		tool: "bash", arg: "go test ./...",
		failed: true,
	}
	tail := act{tool: "bash", arg: "go test ./... | tail -3", output: "nothing to see"}
	for name, v := range map[string]struct {
		want float64
		acts []act
	}{
		"after the last edit":         {1, []act{edit, fail, edit, pass}},
		"a build after the last edit": {1, []act{edit, bash("go build ./...")}},
		"before the last edit":        {0.7, []act{edit, pass, edit}},
		"the end is not known":        {0.5, []act{edit, tail}},
		"the end is read from the output": {1, []act{edit, {
			tool: "bash", arg: tail.arg,
			output: "ok  \texample/a\t0.1s",
		}}},
		"a failure behind a pipe": {0.2, []act{edit, {
			tool: "bash", arg: tail.arg,
			output: "--- FAIL: TestA\nFAIL",
		}}},
		"a failure that is masked": {0.2, []act{edit, {
			tool: "bash", arg: "go test || true",
			output: "FAIL\texample",
		}}},
		"the last run failed":     {0.2, []act{edit, pass, edit, fail}},
		"only before the edits":   {0, []act{pass, edit}},
		"none":                    {0, []act{edit}},
		"nothing at all":          {0, nil},
		"an edit that failed":     {0.5, []act{{tool: "edit", arg: "a.go", failed: true}, pass}},
		"an edit by the shell":    {1, []act{bash("sed -i s/a/b/ a.go"), pass}},
		"a heredoc":               {0.7, []act{bash("cat > a.go <<'E'\nx\nE"), pass, bash("echo x >> ./a.go")}},
		"an edit that nobody saw": {0.5, []act{bash("./generate"), pass}},
	} {
		t.Run(name, func(t *testing.T) {
			f := known(Task{}, ledger.Record{}, modified("a.go", "-a", "+b"))
			f.seen, f.session = played(f.task, []string{"a.go"}, "", v.acts...)
			same(t, name, f.verification(), score(v.want))
		})
	}
	same(t, "without a trace", known(Task{}, ledger.Record{}, "").verification(), nil)
}

func TestCompleteness(t *testing.T) {
	rows := func(list ...string) ledger.Record {
		hidden := &ledger.HiddenTests{}
		for _, row := range list {
			hidden.Details = append(hidden.Details, json.RawMessage(row))
		}
		return ledger.Record{HiddenTests: hidden}
	}
	wantsTest := Task{Prompt: "Fix the race and add a regression test."}
	checked := Task{Requirements: []Requirement{{ID: "r1", Check: "one"}, {ID: "r2", Check: "two"}, {ID: "r3"}}}
	recall := Task{Reference: &Reference{Files: []string{"a.go", "b.go", "c.go"}}}
	all := Task{Prompt: wantsTest.Prompt, Requirements: checked.Requirements, Reference: recall.Reference}
	for name, v := range map[string]struct {
		task   Task
		record ledger.Record
		diff   string
		want   *float64
	}{
		"nothing to measure":        {Task{Prompt: "Fix it."}, ledger.Record{}, resized(1, 1), nil},
		"a test is asked for":       {wantsTest, ledger.Record{}, added("a_test.go", "x"), score(1)},
		"and not written":           {wantsTest, ledger.Record{}, added("a.go", "x"), score(0)},
		"no test is wanted":         {Task{Prompt: "Do not add any tests."}, ledger.Record{}, "", nil},
		"requirements with a check": {checked, rows(`{"test":"one","pass":true}`, `{"test":"two","pass":false}`), "", score(0.5)},
		"a row that counts nothing": {checked, rows(`{"test":"one","pass":true,"weight":0}`), "", nil},
		"a row that contradicts":    {checked, rows(`{"test":"one","pass":true}`, `{"test":"one","pass":false}`), "", score(0)},
		"the reference's files": {recall, ledger.Record{}, added("a.go", "x") + deleted("b.go", "y") + added("d.go",
			"z"), score(2.0 / 3)},
		"the mean of all three": {
			all, rows(`{"test":"one","pass":true}`, `{"test":"two","pass":true}`),
			added("a.go", "x"), score((0 + 1 + 1.0/3) / 3),
		},
	} {
		t.Run(name, func(t *testing.T) {
			same(t, name, known(v.task, v.record, v.diff).completeness(), v.want)
		})
	}
}

// TestACallWithoutAResultHoldsNothingUp: what is remembered of open calls does not grow behind one
// that nobody answers.
func TestACallWithoutAResultHoldsNothingUp(t *testing.T) {
	o := newObserver(&Task{}, nil)
	o.await("never answered", &openCall{})
	for i := range 4 * maxOpen {
		id := fmt.Sprint(i)
		o.await(id, &openCall{})
		if o.taken(id) == nil {
			t.Fatalf("call %d is not known any more", i)
		}
	}
	if len(o.openOrder) > maxOpen || len(o.open) > maxOpen {
		t.Errorf("%d calls in order, %d open", len(o.openOrder), len(o.open))
	}
}
