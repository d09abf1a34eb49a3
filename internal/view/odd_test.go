package view

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/control"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/ledger"
)

// keepRecords rewrites the ledger of a directory with some of its records.
func keepRecords(t *testing.T, dir string, keep func(*ledger.Record) bool) {
	t.Helper()
	path := filepath.Join(dir, experiment.LedgerFile)
	contents, err := ledger.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var kept []ledger.Record
	for i := range contents.Records {
		if keep(&contents.Records[i]) {
			kept = append(kept, contents.Records[i])
		}
	}
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := ledger.Write(out, kept); err != nil {
		t.Fatal(err)
	}
}

// TestNoDifferenceWithoutRuns: where one arm has no run of a task, the difference is not 0 but
// unknown.
func TestNoDifferenceWithoutRuns(t *testing.T) {
	dir := runDirectory(t, filepath.Join(t.TempDir(), "run"))
	keepRecords(t, dir, func(r *ledger.Record) bool { return r.Arm != "after" || r.TaskID != "fix-add-00" })
	p := open(t, dir)
	var answer forestAnswer
	p.read("/api/experiments/"+p.list()[0].ID+"/forest", &answer)
	found := false
	for _, row := range answer.Tasks {
		missing := row.TaskID == "fix-add-00"
		found = found || missing
		if (row.Est == nil) != missing {
			t.Errorf("%s with %d and %d runs: %v", row.TaskID, row.NA, row.NB, row.Est)
		}
	}
	if !found {
		t.Error("the task is not listed")
	}
}

// TestWhatRunsIsWhatTheProcessSays: attempts that another process began and never ended do not run.
func TestWhatRunsIsWhatTheProcessSays(t *testing.T) {
	dir := runDirectory(t, filepath.Join(t.TempDir(), "run"))
	keepRecords(t, dir, func(r *ledger.Record) bool { return r.RunIndex == 0 })
	var starts strings.Builder
	for _, task := range []string{"fix-add-00", "fix-add-01", "fix-add-02"} {
		line, err := json.Marshal(map[string]any{
			"arm": "after", "taskId": task, "runIndex": 1, "attempt": 1, "startMs": 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		starts.Write(append(line, '\n'))
	}
	write(t, filepath.Join(dir, experiment.AttemptsFile), starts.String())
	server, err := control.Serve(dir, fixed{State: control.Running, Running: []control.Cell{
		{Task: "fix-add-02", Arm: "after", Run: 1, Attempt: 2},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p := open(t, dir)
	entry := p.list()[0]
	if entry.InFlight != 1 {
		t.Errorf("%d run", entry.InFlight)
	}
	var grid cellsAnswer
	p.read("/api/experiments/"+entry.ID+"/cells", &grid)
	var running []string
	for _, c := range grid.Cells {
		if c.State == stateRunning {
			running = append(running, c.Task)
		}
	}
	if len(running) != 1 || running[0] != "fix-add-02" {
		t.Errorf("the grid shows as running %v", running)
	}
}

// TestATraceThatHasEndedIsNotLive: vendors' traces end with their result, and have no summary.
func TestATraceThatHasEndedIsNotLive(t *testing.T) {
	const begun = `{"type":"system","subtype":"init","session_id":"s"}` + "\n" +
		`{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"Done."}]}}` + "\n"
	for name, want := range map[string]bool{
		begun: true,
		begun + `{"type":"result","subtype":"success","num_turns":1,"duration_ms":5,"result":"Done."}` + "\n": false,
	} {
		path := filepath.Join(t.TempDir(), "vendor.ndjson")
		write(t, path, name)
		p := open(t, path)
		var list experimentsAnswer
		p.read("/api/experiments", &list)
		var overview struct{ Live bool }
		p.read("/api/trace/overview?trace="+list.Traces[0].ID, &overview)
		if overview.Live != want {
			t.Errorf("live is %t of %s", overview.Live, name)
		}
	}
}

// TestADecidedSentenceIsShown: a sentence that is decided while the page is open changes the grid
// and the cell, as it changes what the commands print.
func TestADecidedSentenceIsShown(t *testing.T) {
	dir := runDirectory(t, filepath.Join(t.TempDir(), "run"))
	p := open(t, dir)
	before := p.list()[0]
	no := false
	verdict := judge.SentenceVerdict{
		Cell:     ledger.Cell{TaskID: "fix-add-03", Arm: "after", RunIndex: 1},
		Attempt:  1,
		Sentence: judge.Sentence{Text: "names the cause", Shown: "outputs"},
		Pass:     &no,
		By:       judge.ByPerson,
		Why:      "it names another",
	}
	if err := judge.WriteSentences(dir, []judge.SentenceVerdict{verdict}); err != nil {
		t.Fatal(err)
	}
	entry := p.list()[0]
	if entry.Passed != before.Passed-1 || entry.Failed != before.Failed+1 {
		t.Errorf("%d passed and %d failed; before, %d and %d", entry.Passed, entry.Failed, before.Passed, before.Failed)
	}
	var one cellAnswer
	p.read("/api/experiments/"+entry.ID+"/cells/fix-add-03/after/1", &one)
	if one.Cell.State != stateFail || one.Attempts[0].Verdict != ledger.Fail || len(one.Rows) == 0 ||
		!strings.Contains(one.Cell.Why, "names the cause") {
		t.Errorf("the cell is %+v with the rows %+v", one.Cell, one.Rows)
	}
}
