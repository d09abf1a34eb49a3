package results_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/foreign"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/ledger"
)

// one is a run as a harness has it.
type one struct {
	task          string
	run           int
	arm           string
	pass, errored bool
	cost, seconds float64
	input, output int64
}

// runsOf are those of an arm: the same for every format. A service failed twice.
func runsOf(arm string, rate float64) []one {
	chance := rand.New(rand.NewPCG(7, uint64(100*rate)))
	var runs []one
	for task := range 24 {
		for run := range 3 {
			runs = append(runs, one{
				task:    fmt.Sprintf("t%02d", task),
				run:     run,
				arm:     arm,
				pass:    chance.Float64() < rate,
				errored: task == 5 && run < 2,
				cost:    float64(1+chance.IntN(9)) / 64,
				seconds: float64(1 + chance.IntN(90)),
				input:   int64(chance.IntN(5000)),
				output:  int64(chance.IntN(500)),
			})
		}
	}
	return runs
}

// formats write runs as other harnesses do, and return what to read.
var formats = map[string]func(t *testing.T, dir string, runs []one) string{
	"CSV":        writeCSV,
	"JSON lines": writeLines,

	"Inspect":      writeInspect,
	"Inspect JSON": writeInspectJSON,

	"promptfoo":       writePromptfoo,
	"promptfoo lines": writePromptfooLines,
	"promptfoo YAML":  writePromptfooYAML,
	"Harbor":          writeHarbor,

	"Harbor by fit":    writtenByFit(foreign.Harbor),
	"Inspect by fit":   writtenByFit(foreign.Inspect),
	"promptfoo by fit": writtenByFit(foreign.Promptfoo),
	"CSV by fit":       writtenByFit(foreign.Table),
}

func write(t *testing.T, path string, content []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func writeCSV(t *testing.T, dir string, runs []one) string {
	text := "task,run,arm,pass,error,cost_usd,seconds,input_tokens,output_tokens\n"
	for _, r := range runs {
		wrong := ""
		if r.errored {
			wrong = "503 from the service"
		}
		text += fmt.Sprintf("%s,%d,%s,%t,%s,%v,%v,%d,%d\n", r.task, r.run, r.arm, r.pass, wrong, r.cost, r.seconds,
			r.input, r.output)
	}
	return write(t, filepath.Join(dir, runs[0].arm+".csv"), []byte(text))
}

func writeLines(t *testing.T, dir string, runs []one) string {
	var text bytes.Buffer
	for _, r := range runs {
		row := map[string]any{
			"task": r.task, "run": r.run, "arm": r.arm, "pass": r.pass, "cost_usd": r.cost, "seconds": r.seconds,
			"input_tokens": r.input, "output_tokens": r.output,
		}
		if r.errored {
			row["pass"], row["error"] = nil, "503 from the service"
		}
		line, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(line, '\n'))
	}
	return write(t, filepath.Join(dir, runs[0].arm+".jsonl"), text.Bytes())
}

func read(t *testing.T, path string, opts foreign.Options) []ledger.Record {
	t.Helper()
	runs, err := foreign.Read(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	return runs.Records()
}

func TestEveryNumberIsThatOfTheFile(t *testing.T) {
	t.Parallel()
	want := runsOf("after", 0.8)
	for name, write := range formats {
		got := map[string]one{}
		for _, r := range read(t, write(t, t.TempDir(), want), foreign.Options{}) {
			o := one{
				task:    r.TaskID,
				arm:     r.Arm,
				run:     r.RunIndex,
				pass:    r.Verdict == ledger.Pass,
				errored: r.Verdict == ledger.Error,
				seconds: float64(r.DurationMs) / 1000,
			}
			if r.CostUSD != nil {
				o.cost = *r.CostUSD
			}
			if r.Tokens != nil {
				o.input, o.output = r.Tokens.InputTokens, r.Tokens.OutputTokens
			}
			got[fmt.Sprint(r.TaskID, " ", r.RunIndex)] = o
			if r.Imported == nil || r.Imported.SHA256 == "" {
				t.Errorf("%s: nobody knows where %s is from", name, r.Key())
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d runs, want %d", name, len(got), len(want))
		}
		for _, w := range want {
			w.pass = w.pass && !w.errored
			g := got[fmt.Sprint(w.task, " ", w.run)]
			if w.errored { // what an error has cost is not always known
				w.cost, w.seconds, w.input, w.output = g.cost, g.seconds, g.input, g.output
			}
			if diff := cmp.Diff(w, g, cmp.AllowUnexported(one{}), cmp.FilterPath(func(p cmp.Path) bool {
				return p.Last().String() == ".arm" // not every format names its arm as we do
			}, cmp.Ignore())); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	}
}

func TestAnErrorOfAServiceIsNeverAFailedTask(t *testing.T) {
	t.Parallel()
	for name, write := range formats {
		failed, errored := 0, 0
		for _, r := range read(t, write(t, t.TempDir(), runsOf("after", 1.1)), foreign.Options{}) {
			switch r.Verdict {
			case ledger.Fail:
				failed++
			case ledger.Error:
				errored++
				if !strings.Contains(r.ErrorMessage, "503") {
					t.Errorf("%s: the error is %q", name, r.ErrorMessage)
				}
			}
		}
		if failed != 0 || errored != 2 {
			t.Errorf("%s: %d runs failed and %d ended in errors, want 0 and 2", name, failed, errored)
		}
	}
}

// compared compares two sides as commands do.
func compared(t *testing.T, before, after string, allow ...string) *report.Comparison {
	t.Helper()
	groups := sidesOf(t, false, before, after)
	comparison, err := report.Compare(groups[0], groups[1], report.CompareConfig{Allow: allow})
	if err != nil {
		t.Fatal(err)
	}
	return comparison
}

func reader(across bool) *results.Reader {
	return &results.Reader{
		AcrossRevisions: across,
		Load: func(dir string) (*results.Results, error) {
			return results.Load([]string{dir}, false, &foreign.Options{})
		},
		Build: func(found *results.Results) (*report.Report, error) {
			return found.Build(context.Background(), results.Auditor{}, nil, false)
		},
	}
}

func sidesOf(t *testing.T, across bool, sides ...string) []*report.Group {
	t.Helper()
	groups, err := reader(across).Sides(sides)
	if err != nil {
		t.Fatal(err)
	}
	return groups
}

func TestEveryFormatGivesTheSameDecision(t *testing.T) {
	t.Parallel()
	before, after := runsOf("before", 0.3), runsOf("after", 0.8)
	want := compared(t, writeLedger(t, t.TempDir(), before), writeLedger(t, t.TempDir(), after), "historical")
	if want.Decision.Claim != "improved" {
		t.Fatalf("our own ledgers say %s", want.Decision.Sentence)
	}
	for name, write := range formats {
		a, b := write(t, t.TempDir(), before), write(t, t.TempDir(), after)
		got := compared(t, a, b, "historical")
		names := strings.NewReplacer(got.B.Arm, "after", got.A.Arm, "before")
		got.Decision.Sentence = names.Replace(got.Decision.Sentence)
		got.Decision.Said = want.Decision.Said // the sentence in its parts
		if diff := cmp.Diff(want.Decision, got.Decision); diff != "" {
			t.Errorf("%s: another decision: %s", name, diff)
		}
		if diff := cmp.Diff([]any{want.Cost, want.Time, want.CostA, want.CostB},
			[]any{got.Cost, got.Time, got.CostA, got.CostB}); diff != "" {
			t.Errorf("%s: other costs or times: %s", name, diff)
		}
		observed := compared(t, a, b)
		if !strings.HasPrefix(observed.Decision.Sentence, "Observed (not one experiment): ") || observed.Differ() {
			t.Errorf("%s: without leave it says %s", name, observed.Decision.Sentence)
		}
		if !strings.Contains(observed.Imported, "not sealed by fit") {
			t.Errorf("%s: nothing is said about the source: %q", name, observed.Imported)
		}
		if observed.Decision.Effect != want.Decision.Effect || *observed.Decision.Lo != *want.Decision.Lo {
			t.Errorf("%s: the numbers differ without leave", name)
		}
	}
}

// writeLedger writes the runs as a run directory of ours whose plan is lost: everything it lacks is
// accepted by nobody, so records say where they are from.
func writeLedger(t *testing.T, dir string, runs []one) string {
	var records []ledger.Record
	for _, r := range runs {
		record := ledger.Record{
			TaskID:     r.task,
			RunIndex:   r.run,
			Arm:        r.arm,
			Attempt:    1,
			Final:      true,
			Experiment: "e-" + r.arm,
			Verdict:    ledger.Fail,
			Grade:      &ledger.Grade{Verdict: ledger.Fail, Healthy: true},
			CostUSD:    &r.cost,
			DurationMs: int64(1000 * r.seconds),
			Imported:   &ledger.Imported{Format: "test"},
			Treatment:  &ledger.Treatment{Unknown: "fit did not run it"},
		}
		switch {
		case r.errored:
			record.Verdict, record.ErrorClass, record.Grade = ledger.Error, ledger.ErrorImported, nil
		case r.pass:
			record.Verdict, record.Grade = ledger.Pass, &ledger.Grade{Verdict: ledger.Pass, Healthy: true}
		}
		records = append(records, record)
	}
	var text bytes.Buffer
	if err := ledger.Write(&text, records); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "results.jsonl"), text.Bytes())
	return dir
}

func TestTasksWithOtherContentAreLeftOut(t *testing.T) {
	t.Parallel()
	table := func(name string, changed int) string {
		text := "task,pass,content\n"
		for i := range 14 {
			content := "what to do"
			if i < changed {
				content += " in " + name
			}
			text += fmt.Sprintf("t%d,1,%s\n", i, content)
		}
		return write(t, filepath.Join(t.TempDir(), name), []byte(text))
	}
	groups := sidesOf(t, false, table("a.csv", 3), table("b.csv", 3))
	for _, g := range groups {
		if len(g.Tasks) != 11 || !strings.Contains(fmt.Sprint(g.Warnings), "left out 3 tasks whose content is not the "+
			"same on both sides (t0, t1, t2)") {
			t.Errorf("%s has %d tasks and says %q", g.Name, len(g.Tasks), g.Warnings)
		}
	}
	if groups := sidesOf(t, true, table("a.csv", 3), table("b.csv", 3)); len(groups[0].Tasks) != 14 {
		t.Errorf("across revisions there are %d tasks", len(groups[0].Tasks))
	}
	_, err := reader(false).Sides([]string{table("a.csv", 14), table("b.csv", 14)})
	if !errors.As(err, new(*results.ChoiceError)) || !strings.Contains(err.Error(), "nothing is left to compare") {
		t.Errorf("of nothing in common it says %v", err)
	}
}

func TestATableSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a,b\n1,2\n":                             "a table needs a column task, and pass or score; it has a, b",
		"task,pass\nt,maybe\n":                   `line 2: pass "maybe" is neither pass nor fail nor error`,
		"task,pass\nt,1\nu\n":                    "line 3 has 1 fields, and the header has 2",
		"task,score\nt,0,5\n":                    "line 2 has 3 fields, and the header has 2: is there a comma in a cell?",
		"task;score\nt;0,5\n":                    `score "0,5" is not a number: if the comma is a decimal one, write 0.5`,
		"task;pass\nt;0,5\n":                     "if the comma is a decimal one, write 0.5",
		"task;pass;cost_usd\nt;1;1,25\n":         "if the comma is a decimal one, write 1.25",
		"task,run,pass\nt,9999999999999,1\n":     `run "9999999999999" is not a number from 0 on, below 1000000`,
		`{"task":"t","pass":1}{"task":"u"}`:      "line 1 is no JSON object",
		"task,pass,pass\nt,1,1\n":                `two columns are called "pass"`,
		"task,score\nt,7\n":                      "the score 7 is not between 0 and 1",
		"task,score\nt,Inf\n":                    "the score +Inf is not between 0 and 1",
		"task,pass,cost_usd\nt,1,-1\n":           `cost_usd "-1" is not a number from 0 on`,
		"task,pass,cost_usd\nt,1,1e300\n":        `cost_usd "1e300" is not a number from 0 on`,
		"task,run,pass\nt,1,1\nt,1,0\n":          "task t, run 1 of x is there twice",
		"task,run,pass\nt,x,1\n":                 `run "x" is not a number from 0 on`,
		"task,pass\n,1\n":                        "the row names no task",
		`{"task":"t","pass":true}` + "\nnothing": "line 2 is no JSON object",
		`{"id":"t"}`:                             "a table needs a column task",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := foreign.Read(write(t, filepath.Join(t.TempDir(), "x.csv"), []byte(text)), foreign.Options{})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
	for text, opts := range map[string]foreign.Options{
		"task,pass\nt,1\n": {Columns: map[string]string{"pass": "ok"}},
		"task,ok\nt,1\n":   {Columns: map[string]string{"passes": "ok"}},
	} {
		_, err := foreign.Read(write(t, filepath.Join(t.TempDir(), "x.csv"), []byte(text)), opts)
		if !errors.As(err, new(*foreign.ChoiceError)) {
			t.Errorf("with %v: %v", opts.Columns, err)
		}
	}
	if _, err := csv.NewReader(strings.NewReader("a\tb")).Read(); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"task\tpass\nt\tyes\n", "task;pass\nt;passed\n", "\ufefftask,pass\nt,1\n"} {
		records := read(t, write(t, filepath.Join(t.TempDir(), "x.csv"), []byte(text)), foreign.Options{})
		if len(records) != 1 || records[0].Verdict != ledger.Pass || records[0].TaskID != "t" || records[0].Arm != "x" {
			t.Errorf("is read as %+v", records)
		}
	}
}

func TestFractionsAreComparedAsScores(t *testing.T) {
	t.Parallel()
	table := func(shift float64) string {
		text := "task,score\n"
		for i := range 20 {
			text += fmt.Sprintf("t%d,%v\n", i, float64(i%5)/10+shift)
		}
		return write(t, filepath.Join(t.TempDir(), "x.csv"), []byte(text))
	}
	got := compared(t, table(0.125), table(0.375), "historical")
	if got.Measure != report.MeasureScore || got.Decision.Effect != 0.25 {
		t.Errorf("measured by %s: %v", got.Measure, got.Decision.Effect)
	}
}
