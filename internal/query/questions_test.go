package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCallsArePairedWithResults(t *testing.T) {
	repeated := strings.Replace(askRead, "/repo/a.go", "/repo/last.go", 1)
	trace := traceOf(t, askRead, askBash, gotRead, gotFailure, repeated,
		`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t9","name":"Glob"},{"type":"tool_use","name":"NoID"}]}}`)
	var got []string
	if err := trace.ToolUses(context.Background(),
		func(c *ToolUse) error { got = append(got, asJSON(t, c)); return nil }); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"turnIndex":4,"name":"Read","toolUseId":"t1","input":{"file_path":"/repo/last.go"},"result":{"content":"package a","isError":false},"source":null}`,
		`{"turnIndex":1,"name":"Bash","toolUseId":"t2","input":{"command":"cat b.go"},"result":{"content":"no such file","isError":true},"source":null}`,
		`{"turnIndex":5,"name":"Glob","toolUseId":"t9","result":null,"source":null}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// Some models number their calls, so that those of several participants have the same ids.
func TestCallsOfSeveralLanesMayShareAnID(t *testing.T) {
	other := strings.NewReplacer("/repo/a.go", "/repo/b.go", "package a", "package b")
	trace := traceOf(t, enveloped("a", 0, askRead), enveloped("b", 1, other.Replace(askRead)),
		enveloped("b", 2, other.Replace(gotRead)), enveloped("a", 3, gotRead))
	var got []string
	err := trace.ToolUses(context.Background(), func(c *ToolUse) error {
		got = append(got, *c.Source+" "+string(c.Input)+" "+*c.Result.Content)
		return nil
	})
	want := []string{`a {"file_path":"/repo/a.go"} package a`, `b {"file_path":"/repo/b.go"} package b`}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestTheTimeOfACallIsKnownFromItsLines(t *testing.T) {
	trace := traceOf(t, `{"source":"a","seq":0,"ts":1000,"event":`+askRead+`}`,
		`{"source":"a","seq":1,"ts":1250,"event":`+gotRead+`}`)
	err := trace.ToolUses(context.Background(), func(c *ToolUse) error {
		if c.DurationMs == nil || *c.DurationMs != 250 {
			t.Errorf("call %+v, want 250 ms", c)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCommandsAndPaths(t *testing.T) {
	trace := traceOf(t, append(sample,
		`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"e","name":"Edit","input":{"file_path":"/repo/a.go"}},{"type":"tool_use","id":"w","name":"Write","input":{"file_path":7}},{"type":"tool_use","id":"g","name":"Grep","input":{"path":"/repo"}}]}}`)...)
	var got []Command
	collect := func(c Command) error { got = append(got, c); return nil }
	if err := trace.Commands(context.Background(), nil, collect); err != nil || len(got) != 1 ||
		got[0].Command != "cat b.go" || !*got[0].IsError {
		t.Errorf("commands %+v, %v", got, err)
	}
	got = nil
	if err := trace.Commands(context.Background(), regexp.MustCompile("CAT"), collect); err != nil || len(got) != 0 {
		t.Errorf("case matters, but: %+v, %v", got, err)
	}
	paths, err := trace.Paths(context.Background(), "/repo/")
	if err != nil || len(paths) != 1 || paths[0] != (PathCount{"/repo/a.go", 2}) {
		t.Errorf("paths %+v, %v", paths, err)
	}
}

func TestRangesAreHalfOpenAndClamped(t *testing.T) {
	trace := traceOf(t, sample...)
	for _, test := range []struct{ from, to, want int }{
		{0, 3, 3},
		{2, 100, 5},
		{5, 2, 0},
		{-2, 100, 2},
		{-3, -1, 2},
		{100, 200, 0},
	} {
		n := 0
		if err := trace.Range(context.Background(), test.from, test.to,
			func(*Entry) error { n++; return nil }); err != nil || n != test.want {
			t.Errorf("[%d,%d): %d turns, %v; want %d", test.from, test.to, n, err, test.want)
		}
	}
	for _, n := range []int{0, 1, 3, 100} {
		var last []int
		if err := trace.Tail(context.Background(), n,
			func(entry *Entry) error { last = append(last, entry.Index); return nil }); err != nil {
			t.Fatal(err)
		}
		if len(last) != min(n, 7) || len(last) > 0 && last[len(last)-1] != 6 {
			t.Errorf("tail %d: turns %v", n, last)
		}
	}
}

func TestCriteriaMustAllHold(t *testing.T) {
	trace := traceOf(t, sample...)
	for _, test := range []struct {
		criteria Criteria
		want     int
	}{
		{Criteria{}, 7},
		{Criteria{Role: RoleAssistant}, 3},
		{Criteria{Tool: "Bash"}, 1},
		{Criteria{Error: true}, 1},
		{Criteria{Tool: "Bash", Error: true}, 0},
		{Criteria{Role: RoleUser, Tool: "Bash"}, 0},
		{Criteria{Role: "nobody"}, 0},
	} {
		n := 0
		if err := trace.Filter(context.Background(), test.criteria,
			func(*Entry) error { n++; return nil }); err != nil || n != test.want {
			t.Errorf("%+v: %d turns, %v; want %d", test.criteria, n, err, test.want)
		}
	}
}

func TestATimelineLeavesOutPureThinking(t *testing.T) {
	trace := traceOf(t, append(sample,
		`{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"}]}}`)...)
	var steps []Step
	if err := trace.Timeline(context.Background(),
		func(s Step) error { steps = append(steps, s); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(steps) != 3 || steps[0].InputTokens != 15 || steps[0].Tools[0] != "Read" || steps[2].Text != "Done." {
		t.Errorf("steps %+v", steps)
	}
}

func TestADocumentGivesTheAnswersOfItsTrace(t *testing.T) {
	trace := open(t, filepath.Join("testdata", "sample.ndjson"), Options{})
	again := open(t, filepath.Join("testdata", "sample.json"), Options{})
	doc, err := os.ReadFile(again.Path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(turnsOf(t, trace), turnsOf(t, again)); diff != "" {
		t.Errorf("turns (-trace +document):\n%s", diff)
	}
	want, got := answers(t, trace), answers(t, again)
	for _, other := range []string{"cost", "overview"} { // a document has no lanes' costs
		delete(want, other)
		delete(got, other)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-trace +document):\n%s", diff)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, doc, "", "  "); err != nil {
		t.Fatal(err)
	}
	if n := len(turnsOf(t, open(t, write(t, pretty.String()), Options{}))); n != 7 {
		t.Errorf("a document over many lines has %d turns, want 7", n)
	}
	for _, odd := range []string{`[]`, `{"turns":0}`, `{"turns":"x"}`, `{"a":1}`} {
		if n := len(turnsOf(t, open(t, write(t, odd), Options{}))); n != 0 {
			t.Errorf("%s: %d turns", odd, n)
		}
	}
}

func TestMessagesPairAsksWithAnswers(t *testing.T) {
	const ask = `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"c1","name":"mcp__orchestration__Ask","input":{"to":"worker","question":"Ready?"}}]}}`
	const asked = `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"{\"askIds\":[7]}"}]}]}}`
	const answer = `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"c2","name":"mcp__orchestration__Answer","input":{"askId":7,"message":"Yes."}}]}}`
	const announce = `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"c3","name":"mcp__orchestration__Announce","input":{"message":"Starting."}}]}}`
	byCalls := []string{
		enveloped("lead", 0, announce), enveloped("lead", 1, ask), enveloped("lead", 2, asked),
		enveloped("worker", 3, answer),
	}
	noted := []string{
		enveloped("orchestrator", 0, `{"type":"message","id":1,"kind":"announce","from":"lead","to":"","text":"Starting."}`),
		enveloped("orchestrator", 1, `{"type":"message","id":2,"kind":"ask","from":"lead","to":"worker","askId":7,"text":"Ready?"}`),
		enveloped("worker", 2, answer),
		enveloped("orchestrator", 3, `{"type":"message","id":3,"kind":"answer","from":"worker","to":"lead","askId":7,"text":"Yes."}`),
	}
	for name, lines := range map[string][]string{"by tool calls": byCalls, "as noted": noted} {
		t.Run(name, func(t *testing.T) {
			got, err := traceOf(t, lines...).Messages(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			want := []Message{
				{Line: 1, Kind: "announce", From: "lead", To: []string{}, Text: "Starting."},
				{
					Line: 2, Kind: "ask", From: "lead", To: []string{"worker"}, AskIDs: []int64{7}, Text: "Ready?",
					Answers: []Answer{{Line: 4, From: "worker", AskID: 7, Text: "Yes."}},
				},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		})
	}
	trace := open(t, write(t, strings.Join(byCalls, "\n")), Options{Lanes: []string{"worker"}})
	if got, err := trace.Messages(context.Background()); err != nil || len(got) != 1 {
		t.Errorf("what concerns the worker: %+v, %v", got, err)
	}
}

func TestValidateNamesTheLine(t *testing.T) {
	trace := traceOf(t, enveloped("a", 0, prompt), enveloped("a", 0, askRead), enveloped("a", 5, gotFailure),
		"nonsense", `{"source":"","seq":6,"event":{"type":"system"}}`,
		`{"source":"a","seq":7,"event":{"x":1}}`, `{"source":"a","seq":8,"event":5}`, `{"type":"assistant","message":{"content":[null]}}`)
	var got []string
	report, err := trace.Validate(context.Background(),
		func(f Finding) error { got = append(got, asJSON(t, f)); return nil })
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"line":2,"severity":"error","message":"seq 0 after 0: it must rise"}`,
		`{"line":3,"severity":"warning","message":"seq jumps from 0 to 5"}`,
		`{"line":3,"severity":"warning","message":"a tool result for a call that was not made: \"t2\""}`,
		`{"line":4,"severity":"error","message":"not a JSON object"}`,
		`{"line":5,"severity":"error","message":"the envelope has an empty source"}`,
		`{"line":6,"severity":"error","message":"the event has no type"}`,
		`{"line":7,"severity":"error","message":"the event of the envelope is not an object"}`,
		`{"line":7,"severity":"error","message":"the event has no type"}`,
		`{"line":8,"severity":"warning","message":"a bare event in a trace of envelopes"}`,
		`{"line":8,"severity":"error","message":"content block 0 is not an object"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if report.Lines != 8 || report.Errors != 7 {
		t.Errorf("report %+v", report)
	}
	clean, err := traceOf(t, sample...).Validate(context.Background(),
		func(f Finding) error { t.Errorf("finding %+v", f); return nil })
	if err != nil || clean.Errors+clean.Warnings != 0 {
		t.Errorf("a good trace: %+v, %v", clean, err)
	}
}

// Codex and the agents of the Agent Client Protocol speak JSON-RPC, whose messages have no type.
func TestValidateKnowsMessagesWithoutAType(t *testing.T) {
	good := traceOf(t,
		enveloped("a", 0, `{"dir":"out","msg":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}}`),
		enveloped("a", 1, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`),
		enveloped("a", 2, `{"method":"turn/started","params":{}}`), enveloped("a", 3, `{"id":2,"result":null}`),
		enveloped("a", 4, `{"id":"3","error":{"code":-1,"message":"no"}}`))
	report, err := good.Validate(context.Background(),
		func(f Finding) error { t.Errorf("finding %+v", f); return nil })
	if err != nil || report.Lines != 5 {
		t.Errorf("report %+v, %v", report, err)
	}
	bad := traceOf(t, enveloped("a", 0, `{"id":1}`), enveloped("a", 1, `{"method":5}`), enveloped("a", 2, `{"result":1}`),
		enveloped("a", 3, `{"dir":"out","msg":5}`), enveloped("a", 4, `{"dir":"out","method":"x"}`))
	report, err = bad.Validate(context.Background(), func(Finding) error { return nil })
	if err != nil || report.Errors != 5 {
		t.Errorf("report %+v, %v", report, err)
	}
}

func TestSplitWritesOneFileForEachParticipant(t *testing.T) {
	path := write(t, strings.Join([]string{
		enveloped("orchestrator", 0, `{"type":"meta"}`), enveloped("agent", 1, prompt),
		enveloped("staff-engineer", 2, askRead), enveloped("supervisor", 3, prompt),
		enveloped("Bad_Name", 4, prompt), enveloped("9lives", 5, prompt), "junk", prompt,
		enveloped("agent", 6, sayDone),
	}, "\n"))
	dir := filepath.Join(t.TempDir(), "deep", "down")
	files, err := open(t, path, Options{}).Split(context.Background(), Split{Mode: "run", Case: "c1", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	want := []string{
		"trace--c1--agent.agent.ndjson", "trace--c1--staff-engineer.agent.ndjson",
		"trace--c1--supervisor.supervisor.ndjson",
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	raw, err := os.ReadFile(filepath.Join(dir, want[0]))
	if err != nil || string(raw) != prompt+"\n"+sayDone+"\n" {
		t.Errorf("events %q, %v", raw, err)
	}
	if _, err := open(t, path, Options{}).Split(context.Background(), Split{Case: "../x", Dir: dir}); err == nil {
		t.Error("a case that leaves the directory was accepted")
	}
	if _, err := traceOf(t, sample...).Split(context.Background(), Split{Case: "c", Dir: dir}); !errors.Is(err,
		ErrNothingToSplit) {
		t.Errorf("a trace without envelopes: %v", err)
	}
}

func TestByDiscussionFindsTracesOldestFirst(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"b.ndjson": `{"source":"orchestrator","seq":0,"ts":2000,"event":{"type":"meta","discussion_id":"D1"}}` + "\n",
		"a.ndjson": `{"source":"orchestrator","seq":0,"ts":3000,"event":{"type":"meta","discussion_id":"D1"}}` + "\n" +
			prompt,
		"c.ndjson": `{"type":"meta","discussion_id":"D2"}` + "\n",
		"d.ndjson": "null\n", "e.ndjson": "{broken", "f.txt": `{"type":"meta","discussion_id":"D1"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
	got, err := ByDiscussion(dir, "D1")
	if err != nil || len(got) != 2 || filepath.Base(got[0]) != "b.ndjson" {
		t.Errorf("traces %v, %v", got, err)
	}
	if got, err := ByDiscussion(filepath.Join(dir, "nowhere"), "D1"); err != nil || len(got) != 0 {
		t.Errorf("a directory that is not there: %v, %v", got, err)
	}
}
