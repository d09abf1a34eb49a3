package view

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/control"
	"github.com/fit-eval/fit/internal/report/versus/versustest"
	"github.com/fit-eval/fit/ledger"
)

// standing is a running experiment that does not get on.
type standing struct{ now control.Status }

func (s standing) Status(context.Context) (control.Status, error) { return s.now, nil }

func (standing) Control(context.Context, control.Command) (string, error) { return "", nil }

// TestWhatRuns: the page of a running experiment says what ctl prints: how long it takes with its
// limits, what it costs an hour, and which cell stands still; thousands have a thin space. The
// cells that ran before have their earlier attempts.
func TestWhatRuns(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "standing")
	if err := writeContest(dir, 2, versustest.Solves, "gives-up"); err != nil {
		t.Fatal(err)
	}
	retried(t, dir)
	stalled(t, filepath.Join(dir, "runs/fix-add-01/quince/1/1/agent.ndjson"))
	hourly := 12.4
	server, err := control.Serve(dir, standing{control.Status{
		State:          control.Running,
		Total:          12_000,
		Done:           7_000,
		CostUSD:        1.75,
		BurnUSDPerHour: &hourly,
		LeftMs:         &control.Left{Est: 180_000, Lo: 120_000, Hi: 240_000},
		Running: []control.Cell{{
			Task:      "fix-add-01",
			Arm:       "quince",
			Run:       1,
			Attempt:   1,
			StartMs:   time.Now().Add(-time.Hour).UnixMilli(),
			ElapsedMs: 3_600_000,
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	address := serve(t, dir)
	g := &guide{asked: askView(t, address)}
	at := "#/x/" + g.id(t, "standing")
	pages := walk(t, map[string]any{"url": address},
		spot{"running", at, ".running-cells tbody tr"},
		spot{"retried", at + "/fix-add-00/pear/0", ".transcript .entry.assistant"},
		spot{"first attempt", at + "/fix-add-00/pear/0?attempt=1", ".outcome h1"},
	)
	var said struct{ Status control.Status }
	answerOf(t, &said, "benchmark", "ctl", dir, "--format", "json")
	if s := said.Status; s.LeftMs == nil || s.LeftMs.Lo != 120_000 || s.LeftMs.Hi != 240_000 {
		t.Errorf("ctl says %+v", s)
	}
	running := pages["running"]
	running.says(t, "7 000 of 12 000", money(&said.Status.CostUSD), money(&hourly)+" an hour", "2–4 min left")
	running.has(t, "fix-add-01 ▸ quince ▸ run 1", "Bash go test ./... stalled, last entry 2 h ago", "1 h 00 m",
		"3", "cancel")
	running.hovers(t, "fix-add-00, pear, run 0: passed after 2 attempts · $0.25 · 4 turns · 9.0 s with grading")
	retries := [][]string{
		{"attempt 1", "error provider", "$0.10", "2 turns", "1.5 s with grading", "the service is overloaded"},
		{"attempt 2", "pass", "$0.25", "4 turns", "9.0 s with grading", ""},
	}
	for _, row := range retries {
		pages["retried"].has(t, row...)
		pages["first attempt"].has(t, row...)
	}
	pages["retried"].says(t, "attempt 2 of 2")
	pages["first attempt"].says(t, "the service is overloaded", "There is no trace of this attempt.")
}

// retried gives the first cell of a directory an earlier attempt, which ended in an error.
func retried(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "results.jsonl")
	contents, err := ledger.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first := contents.Records[0]
	content, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	var second ledger.Record
	moved := strings.ReplaceAll(string(content), first.RunDir, filepath.Join(filepath.Dir(first.RunDir), "2"))
	if err := json.Unmarshal([]byte(moved), &second); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, first.RunDir), filepath.Join(dir, second.RunDir)); err != nil {
		t.Fatal(err)
	}
	second.Attempt = 2
	began, err := json.Marshal(map[string]any{
		"arm": first.Arm, "taskId": first.TaskID, "runIndex": first.RunIndex, "attempt": second.Attempt,
	})
	if err != nil {
		t.Fatal(err)
	}
	journal, err := os.OpenFile(filepath.Join(dir, experiment.AttemptsFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Write(append(began, '\n')); err != nil {
		t.Fatal(err)
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	cost := 0.1
	failed := ledger.Record{
		TaskID:       first.TaskID,
		RunIndex:     first.RunIndex,
		Arm:          first.Arm,
		ArmHash:      first.ArmHash,
		Agent:        first.Agent,
		AgentVersion: first.AgentVersion,
		Model:        first.Model,
		Experiment:   first.Experiment,
		Attempt:      1,
		Verdict:      ledger.Error,
		ErrorClass:   ledger.ErrorProvider,
		ErrorMessage: "the service is overloaded",
		CostUSD:      &cost,
		Turns:        2,
		DurationMs:   1500,
		StartMs:      first.StartMs - 2000,
		EndMs:        first.StartMs - 500,
		Cluster:      first.Cluster,
		Isolation:    first.Isolation,
		RunDir:       first.RunDir,
	}
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := ledger.Write(out, append([]ledger.Record{failed, second}, contents.Records[1:]...)); err != nil {
		t.Fatal(err)
	}
}

// stalled writes a trace to which nothing was added for two hours.
func stalled(t *testing.T, path string) {
	t.Helper()
	c := begin()
	c.call("Bash", map[string]any{"command": "go test ./..."}, "ok", false)
	before := time.Now().Add(-2 * time.Hour)
	if err := os.WriteFile(path, []byte(c.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, before, before); err != nil {
		t.Fatal(err)
	}
}
