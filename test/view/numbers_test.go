package view

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// asked is fit view as a program sees it, without a browser.
type asked struct {
	base   string
	client *http.Client
}

func askView(t *testing.T, address string) *asked {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	base, _, _ := strings.Cut(address, "/?")
	a := &asked{base: base, client: &http.Client{Jar: jar}}
	a.get(t, strings.TrimPrefix(address, base))
	return a
}

func (a *asked) get(t *testing.T, path string) []byte {
	t.Helper()
	response, err := a.client.Get(a.base + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s %v", path, response.Status, content, err)
	}
	return content
}

func (a *asked) read(t *testing.T, path string, into any) {
	t.Helper()
	if err := json.Unmarshal(a.get(t, path), into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// same compares what an endpoint says with what a command prints.
func same(t *testing.T, what string, got json.RawMessage, want any) {
	t.Helper()
	var value any
	if err := json.Unmarshal(got, &value); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if diff := cmp.Diff(want, value); diff != "" {
		t.Errorf("%s is not what the command prints (-command +page):\n%.2000s", what, diff)
	}
}

func printed(t *testing.T, args ...string) (value any) {
	t.Helper()
	answerOf(t, &value, args...)
	return value
}

// TestEveryNumberIsThatOfACommand: what pages show is what report, compare, plan, versus, stats and
// fit-trace print for the same directory.
func TestEveryNumberIsThatOfACommand(t *testing.T) {
	t.Parallel()
	g := visit(t)
	for _, name := range []string{"skills", "judged"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, dir, base := g.asked, filepath.Join(g.top, name), "/api/experiments/"+g.id(t, name)
			a.experiment(t, base, dir)
			a.cells(t, base, dir)
			a.forest(t, base)
			if name == "skills" { // in the other nothing varies, so that there is nothing to plan
				same(t, "plan", a.get(t, base+"/plan?effect=0.2&runs=3"),
					printed(t, "benchmark", "plan", dir, "--effect", "0.2", "--runs", "3", "--format", "json"))
			}
			a.trace(t, base, dir)
		})
	}
}

func (a *asked) experiment(t *testing.T, base, dir string) {
	t.Helper()
	var page struct {
		Report, Comparison json.RawMessage
		Experiment         map[string]any
	}
	a.read(t, base, &page)
	report := printed(t, "benchmark", "report", "--input", dir, "--format", "json", "--detail", "compact")
	same(t, "report", page.Report, report)
	comparison := printed(t, "benchmark", "compare", dir, "--format", "json")
	same(t, "comparison", page.Comparison, comparison)
	var versus struct{ Report json.RawMessage }
	a.read(t, base+"/versus", &versus)
	robot := printed(t, "versus", "report", dir, "--robot")
	same(t, "head to head", versus.Report, robot)
	a.columns(t, base, robot)

	totals := at(report, "totals")
	for field, want := range map[string]any{
		"costUsd": at(totals, "costUsd"), "knownCostUsd": at(totals, "knownCostUsd"), "done": at(totals, "runs"),
		"passed": at(totals, "passed"), "claim": at(comparison, "decision", "claim"),
		"sentence": at(comparison, "decision", "sentence"),
	} {
		if page.Experiment[field] != want {
			t.Errorf("%s of the list is %v, report says %v", field, page.Experiment[field], want)
		}
	}
}

// at follows keys and indexes into a JSON value.
func at(value any, path ...any) any {
	for _, key := range path {
		switch key := key.(type) {
		case string:
			object, _ := value.(map[string]any)
			value = object[key]
		case int:
			value = value.([]any)[key]
		}
	}
	return value
}

// cells compares every cell of the grid with its run in the full report.
func (a *asked) cells(t *testing.T, base, dir string) {
	t.Helper()
	type run struct {
		Verdict    string
		CostUsd    *float64
		Turns      int
		DurationMs int64
	}
	var full struct {
		Groups []struct {
			Provenance struct{ Arm string }
			Tasks      []struct {
				TaskID string
				Runs   []struct {
					RunIndex int
					run
				}
			}
		}
	}
	answerOf(t, &full, "benchmark", "report", "--input", dir, "--format", "json", "--detail", "full", "--damaged")
	want, got := map[string]run{}, map[string]run{}
	for _, group := range full.Groups {
		for _, task := range group.Tasks {
			for _, one := range task.Runs {
				want[fmt.Sprintf("%s/%s/%d", task.TaskID, group.Provenance.Arm, one.RunIndex)] = one.run
			}
		}
	}
	var grid struct {
		Cells []struct {
			Task, Arm, State string
			Run              int
			run
		}
	}
	a.read(t, base+"/cells", &grid)
	for _, cell := range grid.Cells {
		if cell.State == "waiting" {
			continue
		}
		cell.Verdict = cell.State
		got[fmt.Sprintf("%s/%s/%d", cell.Task, cell.Arm, cell.Run)] = cell.run
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
		t.Errorf("the %d cells of the grid are not the runs of the report (-report +page):\n%s", len(got), diff)
	}
}

// forest compares the limits of every task with fit stats difference.
func (a *asked) forest(t *testing.T, base string) {
	t.Helper()
	var page struct {
		Report struct {
			Groups []struct {
				Tasks []struct {
					N, C int
				}
			}
		}
		Comparison struct {
			Decision struct{ Effect, Lo, Hi float64 }
			Tasks    []struct {
				TaskID string
				Delta  float64
				NA, NB int
			}
		}
	}
	a.read(t, base, &page)
	var forest struct {
		Overall struct{ Est, Lo, Hi float64 }
		Tasks   []struct {
			TaskID      string
			NA, NB      int
			Est, Lo, Hi float64
		}
	}
	a.read(t, base+"/forest", &forest)
	if d := page.Comparison.Decision; d.Effect != forest.Overall.Est || d.Lo != forest.Overall.Lo ||
		d.Hi != forest.Overall.Hi {
		t.Errorf("all tasks: the plot has %+v, compare %+v", forest.Overall, d)
	}
	if len(forest.Tasks) != len(page.Comparison.Tasks) {
		t.Fatalf("the plot has %d tasks, compare %d", len(forest.Tasks), len(page.Comparison.Tasks))
	}
	known := map[string]struct{ Est, Lo, Hi float64 }{}
	for i, task := range page.Comparison.Tasks {
		drawn := forest.Tasks[i]
		if drawn.TaskID != task.TaskID || drawn.Est != task.Delta || drawn.NA != task.NA || drawn.NB != task.NB {
			t.Errorf("the plot has %+v, compare %+v", drawn, task)
		}
		one, base := page.Report.Groups[1].Tasks[i], page.Report.Groups[0].Tasks[i]
		args := []string{
			"stats", "difference", "--format", "json", "--k", strconv.Itoa(one.C), "--n", strconv.Itoa(one.N),
			"--base-k", strconv.Itoa(base.C), "--base-n", strconv.Itoa(base.N),
		}
		key := strings.Join(args, " ") // few of the differences are different
		want, ok := known[key]
		if !ok {
			answerOf(t, &want, args...)
			known[key] = want
		}
		if drawn.Lo != want.Lo || drawn.Hi != want.Hi || drawn.Est != want.Est {
			t.Errorf("%s: the plot has %+v, fit stats %+v", task.TaskID, drawn, want)
		}
	}
}

// trace compares the trace of one cell with the verbs of fit-trace.
func (a *asked) trace(t *testing.T, base, dir string) {
	t.Helper()
	var grid struct {
		Cells []struct {
			Task, Arm string
			Run       int
		}
	}
	a.read(t, base+"/cells", &grid)
	c := grid.Cells[len(grid.Cells)-1]
	var cell struct {
		Traces  []struct{ Trace string }
		PerTurn []struct{ InputTokens, OutputTokens int }
	}
	a.read(t, fmt.Sprintf("%s/cells/%s/%s/%d", base, c.Task, c.Arm, c.Run), &cell)
	id := cell.Traces[0].Trace
	_, name, _ := strings.Cut(id, "/")
	file := filepath.Join(dir, filepath.FromSlash(name))
	ask := "trace=" + url.QueryEscape(id)
	var overview struct {
		Overview, Cost json.RawMessage
		Stats          struct{ Totals, ModelUsage json.RawMessage }
		Entries        int
		Verdict        string
	}
	a.read(t, "/api/trace/overview?"+ask, &overview)
	// The command says on top of it what the graders said, as the head of the page does.
	graded := printed(t, "trace", "overview", file, "--format", "json").(map[string]any)
	if overview.Verdict == "" || graded["verdict"] != overview.Verdict {
		t.Errorf("the graders say %v, the page %q", graded["verdict"], overview.Verdict)
	}
	if graded["verdict"] = graded["session"]; graded["verdict"] == "" {
		delete(graded, "verdict")
	}
	for _, name := range []string{"session", "more", "failedChecks", "cause"} {
		delete(graded, name)
	}
	same(t, "overview", overview.Overview, graded)
	same(t, "cost", overview.Cost, printed(t, "trace", "cost", file, "--format", "json"))
	stats := printed(t, "trace", "stats", file, "--format", "json")
	same(t, "totals", overview.Stats.Totals, at(stats, "totals"))
	same(t, "model usage", overview.Stats.ModelUsage, at(stats, "modelUsage"))
	rows := at(stats, "perTurn").([]any)
	if len(rows) != len(cell.PerTurn) {
		t.Fatalf("the cell has tokens of %d turns, fit-trace stats of %d", len(cell.PerTurn), len(rows))
	}
	for i, turn := range cell.PerTurn {
		if float64(turn.InputTokens) != at(rows, i, "inputTokens") ||
			float64(turn.OutputTokens) != at(rows, i, "outputTokens") {
			t.Errorf("turn %d: the cell has %+v, fit-trace stats %v", i, turn, rows[i])
		}
	}
	var lanes struct {
		Entries int
		Lanes   []struct{ Count int }
	}
	a.read(t, "/api/trace/lanes?"+ask+"&buckets=10", &lanes)
	sum := 0
	for _, lane := range lanes.Lanes {
		sum += lane.Count
	}
	if count := printed(t, "trace", "count", file, "--format", "json"); float64(sum) != count ||
		float64(lanes.Entries) != count || float64(overview.Entries) != count {
		t.Errorf("the lanes have %d of %d entries, the overview %d, fit-trace count %v", sum, lanes.Entries,
			overview.Entries, count)
	}
	var calls struct{ Calls json.RawMessage }
	a.read(t, "/api/trace/calls?"+ask, &calls)
	if want, _ := printed(t, "trace", "calls", file, "--format", "json").([]any); len(want) > 0 {
		same(t, "calls", calls.Calls, want)
		var page struct{ Request, Response struct{ Text string } }
		a.read(t, "/api/trace/call?n=0&"+ask, &page)
		var command struct{ Request, Response string }
		answerOf(t, &command, "trace", "call", file, "0", "--format", "json")
		if command.Request == "" || page.Request.Text != command.Request || page.Response.Text != command.Response {
			t.Errorf("the first call: the page has %.200v, the command %.200v", page, command)
		}
	}
	var prompts struct {
		Lanes []struct{ Prompts json.RawMessage }
	}
	a.read(t, "/api/trace/prompts?"+ask, &prompts)
	same(t, "prompts", prompts.Lanes[0].Prompts, printed(t, "session", "prompts", file, "--format", "json"))
	var aligned struct{ Alignment json.RawMessage }
	a.read(t, "/api/trace/align?a="+url.QueryEscape(id)+"&b="+url.QueryEscape(id), &aligned)
	same(t, "alignment", aligned.Alignment, printed(t, "trace", "align", file, file, "--format", "json"))
}

// columns compares the agents side by side in the first run of a task with their cells in the
// report.
func (a *asked) columns(t *testing.T, base string, robot any) {
	t.Helper()
	first := at(robot, "cells", 0)
	var show struct {
		Columns []struct {
			Arm  string
			Cell json.RawMessage
			Diff *struct{ Files, Added, Removed float64 }
		}
	}
	a.read(t, fmt.Sprintf("%s/versus/show/%s/%v", base, at(first, "task"), at(first, "run")), &show)
	if len(show.Columns) != 2 {
		t.Fatalf("%d agents are side by side", len(show.Columns))
	}
	for _, column := range show.Columns {
		for _, cell := range at(robot, "cells").([]any) {
			if at(cell, "task") != at(first, "task") || at(cell, "run") != at(first, "run") ||
				at(cell, "arm") != column.Arm {
				continue
			}
			same(t, "the column of "+column.Arm, column.Cell, cell)
			if d := column.Diff; d == nil || d.Files != at(cell, "diff", "files") ||
				d.Added != at(cell, "diff", "added") || d.Removed != at(cell, "diff", "removed") {
				t.Errorf("the diff of %s has %+v, the report %v", column.Arm, d, at(cell, "diff"))
			}
		}
	}
}

// TestMessagesAreThoseOfTheCommand: who asked whom is what fit-trace messages prints, with the
// number of the entry.
func TestMessagesAreThoseOfTheCommand(t *testing.T) {
	t.Parallel()
	g := visit(t)
	var answer struct{ Messages []map[string]any }
	g.read(t, "/api/trace/messages?trace="+g.lone(t, "team.ndjson"), &answer)
	for _, message := range answer.Messages {
		delete(message, "index")
		for _, one := range message["answers"].([]any) {
			delete(one.(map[string]any), "index")
		}
	}
	content, err := json.Marshal(answer.Messages)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "messages", content,
		printed(t, "trace", "messages", filepath.Join(g.top, "team.ndjson"), "--format", "json"))
}
