package render

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// replay shows a trace given as lines.
func replay(t *testing.T, cfg Config, input string) string {
	t.Helper()
	return resume(t, cfg, "", input)
}

// resume shows a trace of which a part was shown before.
func resume(t *testing.T, cfg Config, past, input string) string {
	t.Helper()
	var out bytes.Buffer
	cfg.Out = &out
	cfg.Dialects = session.Dialects{session.StreamDialect("some-agent")}
	renderer := New(cfg)
	eachLine(t, past, renderer.Past)
	eachLine(t, input, renderer.Line)
	if err := renderer.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func eachLine(t *testing.T, input string, show func(trace.Envelope)) {
	t.Helper()
	for line, err := range trace.NewReader(strings.NewReader(input)).All() {
		if err != nil {
			t.Fatal(err)
		}
		if line.Problem == nil {
			show(line.Envelope)
		}
	}
}

const soloTrace = `{"source":"orchestrator","seq":0,"ts":1000,"event":{"type":"session_start","mode":"run"}}
{"source":"orchestrator","seq":1,"ts":1000,"event":{"type":"agent_start","agent":"agent","protocol":"stream-json"}}
{"source":"agent","seq":2,"ts":1100,"event":{"type":"system","subtype":"init","session_id":"s","model":"m","tools":[]}}
{"source":"agent","seq":3,"ts":1200,"event":{"type":"assistant","message":{"id":"m1","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"I look.\nTwice."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"go test ./..."}}]}}}
{"source":"agent","seq":4,"ts":1300,"event":{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"\n  FAIL x\nmore","is_error":true}]}}}
{"source":"agent","seq":5,"ts":1400,"event":{"type":"assistant","message":{"id":"m2","content":[{"type":"tool_use","id":"t2","name":"mcp__orc__Ask","input":{"question":"why?"}}]}}}
{"source":"agent","seq":6,"ts":1500,"event":{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":"fine"}]}}}
{"source":"agent","seq":7,"ts":1600,"event":{"type":"result","subtype":"success","is_error":false,"result":"ok","num_turns":2,"duration_ms":61000,"total_cost_usd":0.01234,"usage":{"input_tokens":10,"output_tokens":5}}}
{"source":"orchestrator","seq":8,"ts":1700,"event":{"type":"summary","success":false,"verdict":"failure","turns":2}}
`

func TestARunIsShownWithoutLabels(t *testing.T) {
	want := `[init]
I look.
Twice.
Bash: go test ./...
Error: FAIL x
Ask: {"question":"why?"}
--- Result: failure | Turns: 2 | Cost: $0.0123 | Duration: 1m 1s ---
`
	if diff := cmp.Diff(want, replay(t, Config{}, soloTrace)); diff != "" {
		t.Error(diff)
	}
}

func TestTheFooterOfAResumedSessionSumsUpAllOfIt(t *testing.T) {
	const (
		earlier = `{"source":"agent","seq":0,"ts":1,"event":{"type":"result","subtype":"success","num_turns":7,"duration_ms":9000,"total_cost_usd":7}}` + "\n"
		resumed = `{"source":"orchestrator","seq":9,"ts":900000,"event":{"type":"resumed"}}
{"source":"orchestrator","seq":10,"ts":900000,"event":{"type":"agent_start","agent":"agent","protocol":"stream-json"}}
{"source":"agent","seq":11,"ts":900050,"event":{"type":"assistant","message":{"id":"m3","content":[{"type":"text","text":"Done."}]}}}
`
		last = `{"source":"agent","seq":12,"ts":900100,"event":{"type":"result","subtype":"success","num_turns":1,"duration_ms":2000,"total_cost_usd":0.01234}}` + "\n"
	)
	past, _, _ := strings.Cut(soloTrace, `{"source":"orchestrator","seq":8`)
	// It was killed 10 s into another turn.
	past += `{"source":"agent","seq":8,"ts":5000,"event":{"type":"system","subtype":"init","session_id":"s"}}
{"source":"agent","seq":9,"ts":15000,"event":{"type":"rate_limit_event"}}
`
	want := "Done.\n--- Result: success | Turns: 3 | Cost: $0.0247 | Duration: 1m 13s ---\n"
	if diff := cmp.Diff(want, resume(t, Config{}, earlier+past, resumed+last)); diff != "" {
		t.Error(diff)
	}
}

func TestADurationThatCannotBeMeantIsNotShown(t *testing.T) {
	trace := strings.Replace(soloTrace, `"duration_ms":`, `"duration_ms":1e300,"x":`, 1)
	if got := replay(t, Config{}, trace); !strings.Contains(got, "| Duration: 600ms ---") {
		t.Error(got)
	}
}

// A session that cannot be resumed has no result, whatever its agents came to before.
func TestThePastAloneHasNoFooter(t *testing.T) {
	if got := resume(t, Config{}, soloTrace, ""); got != "" {
		t.Error(got)
	}
}

// Whoever is stopped before a turn of the model has used nothing; that leaves the sum known.
func TestAParticipantThatUsedNothingLeavesTheCostKnown(t *testing.T) {
	const idle = `{"source":"bob","seq":9,"ts":1700,"event":{"type":"system","subtype":"init","session_id":"t","model":"m"}}
{"source":"bob","seq":10,"ts":1700,"event":{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":0,"total_cost_usd":0,"usage":{"input_tokens":0,"output_tokens":0}}}
`
	if got := replay(t, Config{}, soloTrace+idle); !strings.Contains(got, "| Cost: $0.0123 |") {
		t.Error(got)
	}
}

// Whoever is stopped in the middle of a turn has used what it used.
func TestAParticipantWithoutAnEndCounts(t *testing.T) {
	const stopped = `{"source":"bob","seq":9,"ts":1700,"event":{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"Well"}]}}}
{"source":"orchestrator","seq":10,"ts":1700,"event":{"type":"model_call","agent":"bob","seq":1,"protocol":"anthropic","path":"/v1/messages","status":200,"outcome":"ok","usage":{"input":10,"output":5},"costUsd":0.5}}
`
	if got := replay(t, Config{}, soloTrace+stopped); !strings.Contains(got, "| Turns: 3 | Cost: $0.5123 |") {
		t.Error(got)
	}
}

func TestATeamIsShownWithLabelsAndItsTroubles(t *testing.T) {
	team := strings.ReplaceAll(strings.Replace(soloTrace, `,"mode":"run"`, `,"mode":"facilitate"`, 1), `"agent"`,
		`"bob"`)
	team = strings.ReplaceAll(team, `"bob":`, `"agent":`)
	team += `{"source":"orchestrator","seq":9,"ts":1,"event":{"type":"protocol_violation","agent":"bob","askId":3,"mode":"facilitated"}}
{"source":"orchestrator","seq":10,"ts":1,"event":{"type":"lead_turn_limit","limit":200}}
`
	got := replay(t, Config{}, team)
	for _, want := range []string{
		"bob: I look.\n", "bob: Bash: go test ./...\n",
		"orchestrator: [protocol_violation] bob did not answer ask 3\n", "has used its 200 turns",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}

func TestColoursComeOnlyWhenAskedFor(t *testing.T) {
	if strings.Contains(replay(t, Config{}, soloTrace), "\x1b") {
		t.Error("there is colour without asking")
	}
	got := replay(t, Config{Colour: true}, soloTrace)
	if !strings.Contains(got, "\x1b[38;2;129;199;132m[init]\x1b[0m\n") ||
		!strings.Contains(got, "\x1b[38;2;241;76;76mError: FAIL x\x1b[0m\n") {
		t.Errorf("colours: %q", got)
	}
}

func TestAnAgentCannotPaintOnTheTerminal(t *testing.T) {
	hostile := `{"source":"agent","seq":0,"event":{"type":"assistant","message":{"content":[{"type":"text","text":"\u001b[2J\u001b]0;owned\u0007 \u202egnitirw\u0000"}]}}}` + "\n"
	got := replay(t, Config{}, hostile)
	if strings.ContainsAny(got, "\x1b\x07\x00\u202e") {
		t.Errorf("shown: %q", got)
	}
}

func TestWithoutAnEndThereIsNoFooter(t *testing.T) {
	cut, _, _ := strings.Cut(soloTrace, `{"source":"agent","seq":7`)
	if got := replay(t, Config{}, cut); strings.Contains(got, "---") {
		t.Errorf("shown: %q", got)
	}
	if got := replay(t, Config{}, ""); got != "" {
		t.Errorf("nothing is shown as %q", got)
	}
}
