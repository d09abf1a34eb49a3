package evidence_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

var dialects = catalog.Default().Dialects()

// tracer writes the trace of an agent that speaks stream-json.
type tracer struct {
	bytes.Buffer
	calls int
}

func (w *tracer) line(ms int64, source, event string) {
	fmt.Fprintf(w, `{"ts":%d,"source":%q,"seq":1,"event":%s}`+"\n", 1_000_000+ms, source, event)
}

func (w *tracer) start() {
	w.line(0, "orchestrator", `{"type":"agent_start","agent":"agent","runtime":"claude-code","version":"2.1.0","protocol":"stream-json"}`)
	w.line(0, "orchestrator", `{"type":"system_prompt","agent":"agent","source":"profile","label":"profile","content":"Be brief.\nTest first."}`)
	w.line(0, "agent", `{"type":"system","subtype":"init","session_id":"s","cwd":"/ws/cell/work","tools":["Bash"],"model":"claude-x"}`)
}

func (w *tracer) say(ms int64, text string) {
	w.calls++
	w.line(ms, "agent", fmt.Sprintf(`{"type":"assistant","message":{"id":"m%d","role":"assistant","content":[{"type":"text","text":%q}],"usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":30}}}`, w.calls, text))
}

func (w *tracer) call(ms int64, tool, args, output string, failed bool) {
	w.calls++
	w.line(ms, "agent", fmt.Sprintf(`{"type":"assistant","message":{"id":"m%[1]d","role":"assistant","content":[{"type":"tool_use","id":"t%[1]d","name":%[2]q,"input":%[3]s}]}}`, w.calls, tool, args))
	w.line(ms, "agent", fmt.Sprintf(`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":%q,"is_error":%v}]}}`, w.calls, output, failed))
}

func (w *tracer) end(ms int64, code int) {
	w.line(ms, "agent", `{"type":"result","subtype":"success","is_error":false,"result":"Done.","num_turns":3,"total_cost_usd":0.5,"usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":30}}`)
	w.line(ms, "orchestrator", fmt.Sprintf(`{"type":"agent_end","agent":"agent","exitCode":%d,"argv":["claude","-p"],"binary":"/bin/claude","binarySha256":"ab","auth":"apikey","startMs":1000000,"endMs":%d}`, code, 1_000_000+ms))
}

// worked is a trace of the run that was worked out by hand.
func worked() *tracer {
	w := &tracer{}
	w.start()
	w.call(400, "Grep", `{"pattern":"Add"}`, "a.go", false)
	w.call(900, "Read", `{"file_path":"a.go"}`, "x", false)
	w.call(2000, "Edit", `{"file_path":"a.go"}`, "not found", true)
	w.call(2600, "Edit", `{"file_path":"a.go"}`, "ok", false)
	w.call(4000, "Bash", `{"command":"go test ./..."}`, "Exit code 1\nFAIL", true)
	w.call(5200, "Edit", `{"file_path":"a.go"}`, "ok", false)
	w.call(6000, "Bash", `{"command":"go test ./..."}`, "ok", false)
	w.say(7000, "Done.")
	w.end(7100, 0)
	return w
}

const sourceDiff = "diff --git a/a.go b/a.go\n--- a/a.go\n+++ b/a.go\n@@ -1,2 +1,2 @@\n package a\n-old\n+new\n"

func attempt(verdict string, exit int) *ledger.Record {
	return &ledger.Record{
		TaskID: "fix", Arm: "claude", RunIndex: 2, Agent: "claude-code", Verdict: verdict, RunDir: "runs/fix.claude.2",
		StartMs: 999_000, EndMs: 1_010_000, Hash: "h",
		Verify: &ledger.Verify{Passed: exit == 0, ExitCode: exit, EndMs: 1_009_000},
	}
}

func collect(t *testing.T, from evidence.Sources) *evidence.Run {
	t.Helper()
	from.Dialects = dialects
	run, err := evidence.Collect(from)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func milestones(run *evidence.Run) map[string]int64 {
	got := map[string]int64{}
	for _, m := range run.Session.Milestones {
		got[m.Kind] = m.ElapsedMs
	}
	return got
}

func TestAWorkedExample(t *testing.T) {
	run := collect(t, evidence.Sources{
		Task: evidence.Task{ID: "fix", Reference: &evidence.Reference{
			MaxLines: 2, MaxFiles: 1,
			Files: []string{"a.go"},
		}},
		Record: attempt(ledger.Pass, 0), Trace: worked(), Diff: []byte(sourceDiff),
	})
	want := map[string]int64{
		session.FirstSearch: 400, session.FirstFileRead: 900, session.FirstFileEdit: 2600,
		session.FirstErrorRecovery: 2600, session.FirstBashCommand: 4000,
		session.FirstTestRun: 4000, session.TaskCompletion: 7000, session.VerificationPass: 9000,
	}
	if diff := cmp.Diff(want, milestones(run)); diff != "" {
		t.Errorf("milestones (-want +got):\n%s", diff)
	}
	one := 1.0
	if diff := cmp.Diff(evidence.QualityRubric{
		Correctness: &one, Completeness: &one, MinimalDiff: &one,
		Verification: &one,
	}, run.Rubric); diff != "" {
		t.Errorf("rubric (-want +got):\n%s", diff)
	}
	s := run.Session
	if run.Status != evidence.StatusOK || run.Resolved() == nil || !*run.Resolved() || run.Attribution != nil ||
		len(s.Integrity) != 0 {
		t.Errorf("status %s, resolved %v, attribution %v, flags %v", run.Status, run.Resolved(), run.Attribution, s.Integrity)
	}
	if s.RunID != "fix.claude.2" || s.TaskID != "fix" || s.RunIndex != 2 || s.Diff != (session.DiffStat{
		Files:      1,
		Insertions: 1, Deletions: 1,
	}) {
		t.Errorf("session: %+v", s)
	}
	if s.WallClockMs != 7100 || s.Process == nil || s.Process.Argv[1] != "-p" || s.Process.BinarySHA256 != "ab" {
		t.Errorf("wall clock %d, process %+v", s.WallClockMs, s.Process)
	}
	if len(run.Files) != 1 || run.Files[0].Edit != evidence.EditSeen || run.Files[0].Class != evidence.ClassSource {
		t.Errorf("files: %+v", run.Files)
	}
	e := run.Efficiency
	if e.EditsAttempted != 3 || e.EditsFailed != 1 || *e.FirstEditMs != 2600 || *e.GreenMs != 6000 ||
		*e.CacheHitRatio != 0.75 ||
		e.ToolCalls["test"] != 2 || *e.ExplorationShare != 2.0/7 {
		t.Errorf("efficiency: %+v", e)
	}
	if len(run.Prompts) == 0 || run.Prompts[0].Label != "profile" || run.Prompts[0].Bytes != 21 {
		t.Errorf("prompts: %+v", run.Prompts)
	}
	for _, step := range run.Steps {
		if step.Line == 0 || step.Text == "" && step.Kind != evidence.StepResult {
			t.Errorf("step: %+v", step)
		}
	}
}

// TestFakeAgents are agents that do one bad thing each.
func TestFakeAgents(t *testing.T) {
	for name, v := range map[string]struct {
		play     func(*tracer)
		diff     string
		exit     int
		status   evidence.Status
		resolved string
		flag     string
		cause    string
	}{
		"test-deleter": {
			func(w *tracer) { w.call(10, "Bash", `{"command":"rm a_test.go"}`, "", false) },
			"diff --git a/a_test.go b/a_test.go\ndeleted file mode 100644\n--- a/a_test.go\n+++ /dev/null\n@@ -1 +0,0 @@\n-package a\n",
			0, evidence.StatusDisqualified, "false", "test_deleted a_test.go:-1", "",
		},
		"history-miner": {
			func(w *tracer) { w.call(10, "Bash", `{"command":"git log --all -p"}`, "commit 1", false) },
			sourceDiff, 0, evidence.StatusDisqualified, "false", "history_mining trace:4", "",
		},
		"json-garbage": {func(w *tracer) {
			w.Reset()
			w.line(0, "orchestrator", `{"type":"agent_start","agent":"agent","runtime":"claude-code","protocol":"stream-json"}`)
			for range 50 {
				w.line(1, "agent", `{"type":"raw","text":"%!!{"}`)
				w.line(1, "agent", `{"type":"assistant","message":{"content":5`+`}}`)
			}
		}, "", 1, evidence.StatusOK, "false", "", evidence.CauseHarnessError},
		"spam": {func(w *tracer) {
			for i := range 60 {
				w.say(int64(i), strings.Repeat("spam ", 5000))
			}
		}, "", 1, evidence.StatusOK, "false", "", evidence.CauseBudgetOrLoop},
		"no-op": {
			func(w *tracer) { w.say(10, "I give up.") }, "", 1, evidence.StatusOK, "false", "",
			evidence.CauseNoChange,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := &tracer{}
			w.start()
			v.play(w)
			w.end(9000, 0)
			verdict := ledger.Pass
			if v.exit != 0 {
				verdict = ledger.Fail
			}
			run := collect(t, evidence.Sources{
				Task: evidence.Task{ID: "fix", Prompt: "Fix it."}, Record: attempt(verdict, v.exit),
				Trace: w, Diff: []byte(v.diff),
			})
			flag := ""
			for _, f := range run.Session.Integrity {
				flag = f.Kind + " " + f.Address()
			}
			cause := ""
			if run.Attribution != nil {
				cause = run.Attribution.Category
			}
			resolved, err := json.Marshal(run.Resolved())
			if err != nil || run.Status != v.status || string(resolved) != v.resolved || flag != v.flag ||
				cause != v.cause {
				t.Errorf("status %s, resolved %s, flag %q, cause %q; want %+v", run.Status, resolved, flag, cause, v)
			}
			if data, err := json.Marshal(run); err != nil || len(data) > 1<<20 {
				t.Errorf("%d bytes of evidence (%v)", len(data), err)
			}
		})
	}
}

// TestWithoutATrace: what only the ledger knows is still evidence, and what nobody saw is null.
func TestWithoutATrace(t *testing.T) {
	run := collect(t, evidence.Sources{Task: evidence.Task{ID: "fix"}, Record: attempt(ledger.Fail, 1)})
	if run.Captured || run.Rubric.Verification != nil || *run.Rubric.Correctness != 0 ||
		run.Attribution.Category != evidence.CauseNoChange {
		t.Errorf("%+v", run)
	}
	data, err := json.Marshal(run)
	if err != nil || strings.Contains(string(data), `"milestones":null`) {
		t.Errorf("%s %v", data, err)
	}
}

func TestTheCacheFollowsItsInputs(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("trace.ndjson", worked().String())
	write("diff.patch", sourceDiff)
	record := attempt(ledger.Pass, 0)
	record.AgentTracePath, record.DiffPath = "trace.ndjson", "diff.patch"
	d := &evidence.Directory{Root: dir, Dialects: dialects}
	task := evidence.Task{ID: "fix"}
	read := func() *evidence.Run {
		t.Helper()
		run, err := d.Run(context.Background(), task, record)
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	entries := func() int { return len(cacheFiles(t, dir)) }
	first := read()
	if diff := cmp.Diff(first, read()); diff != "" {
		t.Errorf("from the cache (-made +read):\n%s", diff)
	}
	if entries() != 1 {
		t.Errorf("%d entries", entries())
	}
	task.VerifyCommand = "make check"
	read()
	record.Hash = "other"
	read()
	write("diff.patch", sourceDiff+"# binary file added: b\n")
	if run := read(); len(run.Files) != 2 || entries() != 4 {
		t.Errorf("%d files, %d entries", len(run.Files), entries())
	}
	// A torn entry is rebuilt.
	for _, file := range cacheFiles(t, dir) {
		if err := os.WriteFile(file, []byte(`{"key":`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if run := read(); len(run.Files) != 2 {
		t.Errorf("after a torn entry: %d files", len(run.Files))
	}
	record.AgentTracePath, record.Artifacts = "../outside", nil
	if _, err := d.Run(context.Background(), task, record); err == nil {
		t.Error("a trace outside the run directory was read")
	}
}

// TestAnEditedEntryIsRebuilt: what stands in the cache is what was made, and for the same run.
func TestAnEditedEntryIsRebuilt(t *testing.T) {
	dir := t.TempDir()
	d := &evidence.Directory{Root: dir, Dialects: dialects}
	read := func(verdict string) *evidence.Run {
		t.Helper()
		record := attempt(verdict, 1)
		record.Hash = verdict
		run, err := d.Run(t.Context(), evidence.Task{ID: "fix"}, record)
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	made := read(ledger.Fail)
	failed := cacheFiles(t, dir)[0]
	content, err := os.ReadFile(failed)
	if err != nil {
		t.Fatal(err)
	}
	edited := bytes.Replace(content, []byte(`"taskResolved":false`), []byte(`"taskResolved":true`), 1)
	if bytes.Equal(edited, content) {
		t.Fatalf("nothing to edit in %s", content)
	}
	if err := os.WriteFile(failed, edited, 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(made, read(ledger.Fail)); diff != "" {
		t.Errorf("an edited entry (-made +read):\n%s", diff)
	}
	read(ledger.Pass)
	for _, file := range cacheFiles(t, dir) {
		if file == failed {
			continue
		}
		if err := os.Rename(file, failed); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(made, read(ledger.Fail)); diff != "" {
		t.Errorf("the entry of another run (-made +read):\n%s", diff)
	}
}

// TestARepositoryInTheWorkspaceIsNoChange: what git keeps for itself is nobody's work.
func TestARepositoryInTheWorkspaceIsNoChange(t *testing.T) {
	task := evidence.Task{ID: "fix", Prompt: "Fix it.", Reference: &evidence.Reference{MaxLines: 2, MaxFiles: 1}}
	nested := strings.ReplaceAll(sourceDiff, "a.go", "sub/.git/config") + "# binary file added: sub/.git/index\n" +
		strings.ReplaceAll(sourceDiff, "a.go", ".gitignore")
	run := collect(t, evidence.Sources{Task: task, Record: attempt(ledger.Pass, 0), Diff: []byte(sourceDiff + nested)})
	if want := (session.DiffStat{Files: 2, Insertions: 2, Deletions: 2}); run.Session.Diff != want ||
		len(run.Files) != 2 {
		t.Errorf("%+v, files %+v", run.Session.Diff, run.Files)
	}
	hidden := "diff --git a/a_test.go b/sub/.git/a_test.go\nsimilarity index 100%\nrename from a_test.go\n" +
		"rename to sub/.git/a_test.go\n"
	run = collect(t, evidence.Sources{Task: task, Record: attempt(ledger.Pass, 0), Diff: []byte(hidden)})
	if !run.Disqualified() {
		t.Errorf("a test that was hidden there: %s, %+v", run.Status, run.Session.Integrity)
	}
}

func cacheFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, evidence.CacheDir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestAnArtefactIsWhatTheRecordSays: whoever takes away or changes a trace or a diff takes the
// evidence away, and never gets a clean bill for the run. What was made from the right files stays.
func TestAnArtefactIsWhatTheRecordSays(t *testing.T) {
	contents := map[string]string{"trace.ndjson": worked().String(), "diff.patch": sourceDiff}
	vouching := attempt(ledger.Pass, 0)
	vouching.AgentTracePath, vouching.DiffPath = "trace.ndjson", "diff.patch"
	naming := *vouching
	for name, content := range contents {
		sum := sha256.Sum256([]byte(content))
		vouching.Artifacts = append(vouching.Artifacts, ledger.Artifact{Path: name, SHA256: hex.EncodeToString(sum[:])})
	}
	for _, damage := range []struct {
		name, file, content string // without content the file is missing
		record              *ledger.Record
	}{
		{"the diff is gone", "diff.patch", "", vouching},
		{"the diff is empty", "diff.patch", "\n", vouching},
		{"the trace is gone", "trace.ndjson", "", vouching},
		{"the trace goes on", "trace.ndjson", contents["trace.ndjson"] + "{}\n", vouching},
		{"a packed trace is cut", "trace.ndjson", "\x28\xb5\x2f\xfd", vouching},
		{"a diff is gone for which nobody vouches", "diff.patch", "", &naming},
		{"a trace is gone for which nobody vouches", "trace.ndjson", "", &naming},
	} {
		t.Run(damage.name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, content string) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			harm := func() {
				t.Helper()
				if damage.content != "" {
					write(damage.file, damage.content)
				} else if err := os.Remove(filepath.Join(dir, damage.file)); err != nil {
					t.Fatal(err)
				}
			}
			for name, content := range contents {
				write(name, content)
			}
			harm()
			d := &evidence.Directory{Root: dir, Dialects: dialects}
			_, err := d.Run(t.Context(), evidence.Task{ID: "fix"}, damage.record)
			if err == nil || !strings.Contains(err.Error(), damage.file) {
				t.Errorf("error %v", err)
			}
			if files := cacheFiles(t, dir); len(files) != 0 {
				t.Errorf("kept: %s", files)
			}
			for name, content := range contents {
				write(name, content)
			}
			if _, err := d.Run(t.Context(), evidence.Task{ID: "fix"}, damage.record); err != nil {
				t.Fatal(err)
			}
			harm()
			_, err = d.Run(t.Context(), evidence.Task{ID: "fix"}, damage.record)
			if err == nil || !strings.Contains(err.Error(), damage.file) {
				t.Errorf("with a cache: error %v", err)
			}
		})
	}
}

func TestTasksAreReadBack(t *testing.T) {
	dir := t.TempDir()
	if tasks, err := evidence.ReadTasks(dir, ""); tasks != nil || err != nil {
		t.Errorf("no file: %v %v", tasks, err)
	}
	task := evidence.Task{ID: "fix", Prompt: "Fix <it> & more", ProtectedGlobs: []string{"**/*_test.go"}}
	task.Reference = evidence.ReferenceOf(&task, []byte(sourceDiff+"diff --git a/a_test.go b/a_test.go\n--- a/a_test.go\n+++ b/a_test.go\n@@ -1 +1,2 @@\n a\n+b\n"))
	if task.Reference.MaxLines != 2 || task.Reference.MaxFiles != 1 || len(task.Reference.Files) != 2 {
		t.Errorf("reference: %+v", task.Reference)
	}
	task.Expected = evidence.ExpectedValues([]byte("assert greet() == 'good morning'\nimport 'somewhere/else'\nx = 'short'\n"))
	if diff := cmp.Diff([]string{"good morning"}, task.Expected); diff != "" {
		t.Error(diff)
	}
	if _, err := evidence.WriteTasks(dir, []evidence.Task{task}); err != nil {
		t.Fatal(err)
	}
	got, err := evidence.ReadTasks(dir, "")
	if diff := cmp.Diff([]evidence.Task{task}, got); err != nil || diff != "" {
		t.Errorf("%v (-written +read):\n%s", err, diff)
	}
	for _, damaged := range []string{`{"version":2,"tasks":[]}`, `{"version":1,`} {
		if err := os.WriteFile(filepath.Join(dir, evidence.TasksFile), []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := evidence.ReadTasks(dir, ""); err == nil {
			t.Errorf("%s was read", damaged)
		}
	}
}
