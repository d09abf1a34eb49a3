package session_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/session"
)

// wireTrace is the trace of an agent that says it has cost half a dollar, with what the gateway
// saw.
func wireTrace(t *testing.T, seen ...calls.Call) string {
	t.Helper()
	lines := []string{
		`{"source":"orchestrator","seq":0,"ts":1,"event":{"type":"agent_start","agent":"agent","runtime":"claude-code"}}`,
		`{"source":"agent","seq":1,"ts":2,"event":{"type":"assistant","message":{"id":"m1","model":"m",` +
			`"content":[{"type":"text","text":"hello"}],"usage":{"input_tokens":100,"output_tokens":10}}}}`,
		`{"source":"agent","seq":2,"ts":3,"event":{"type":"result","subtype":"success","result":"hello",` +
			`"total_cost_usd":0.5,"usage":{"input_tokens":100,"output_tokens":10}}}`,
	}
	for _, call := range seen {
		event, err := json.Marshal(struct {
			Type  string `json:"type"`
			Agent string `json:"agent"`
			calls.Call
		}{"model_call", "agent", call})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, `{"source":"orchestrator","seq":9,"ts":4,"event":`+string(event)+`}`)
	}
	return strings.Join(lines, "\n") + "\n"
}

func readWire(t *testing.T, seen ...calls.Call) *session.EnrichedSession {
	t.Helper()
	sessions, err := session.Read(strings.NewReader(wireTrace(t, seen...)),
		session.Dialects{session.StreamDialect("claude-code")}, session.Options{})
	if err != nil || len(sessions) != 1 {
		t.Fatalf("%d sessions, %v", len(sessions), err)
	}
	return sessions[0]
}

func ok(usage *session.TokenUsage, usd *float64) calls.Call {
	call := calls.Call{Model: "m", Outcome: calls.OK, Status: 200, Tools: 3, Messages: 1, CostUSD: usd}
	if usage != nil {
		call.Usage = &calls.UsageJSON{TokenUsage: *usage}
	}
	return call
}

func dollars(usd float64) *float64 { return &usd }

func TestUsageFromTheWireIsPreferred(t *testing.T) {
	usage := &session.TokenUsage{
		InputTokens: 100, OutputTokens: 10, CacheReadTokens: 5, CacheWriteTokens: 2, CacheWriteLongTokens: 2,
	}
	title := calls.Call{
		Model: "small", Outcome: calls.OK, Status: 200, Messages: 1,
		Usage: &calls.UsageJSON{TokenUsage: session.TokenUsage{InputTokens: 7}}, CostUSD: dollars(0.01),
	}
	s := readWire(t, title, calls.Call{Model: "m", Outcome: calls.Failed, Status: 529, Tools: 3, Messages: 1},
		ok(usage, dollars(0.25)), ok(usage, dollars(0.25)))
	want := session.TokenUsage{
		InputTokens: 207, OutputTokens: 20, CacheReadTokens: 10, CacheWriteTokens: 4, TotalTokens: 241,
		CacheWriteLongTokens: 4, CostUSD: dollars(0.51), CostSource: session.CostWire,
	}
	if diff := cmp.Diff(want, s.Usage); diff != "" {
		t.Error(diff)
	}
	if s.ReportedUsage == nil || *s.ReportedUsage.CostUSD != 0.5 || s.ModelUsage["small"].InputTokens != 7 {
		t.Errorf("reported %+v, models %v", s.ReportedUsage, s.ModelUsage)
	}
	var turns []int
	for _, call := range s.ModelCalls {
		turns = append(turns, call.Turn)
	}
	if diff := cmp.Diff([]int{0, 1, 1, 2}, turns); diff != "" {
		t.Error(diff)
	}
}

func TestTheAgentsWordCountsWhereTheWireIsSilent(t *testing.T) {
	silent := ok(nil, nil)
	for name, seen := range map[string][]calls.Call{
		"no gateway": nil, "nothing said": {silent},
		"one of two": {ok(&session.TokenUsage{InputTokens: 1}, dollars(0.25)), silent},
	} {
		t.Run(name, func(t *testing.T) {
			s := readWire(t, seen...)
			if s.Usage.CostSource != session.CostReported || *s.Usage.CostUSD != 0.5 || s.ReportedUsage != nil {
				t.Errorf("%s: %+v", name, s.Usage)
			}
		})
	}
	s := readWire(t, ok(&session.TokenUsage{InputTokens: 3}, nil)) // tokens are known, their price is not
	if s.Usage.InputTokens != 3 || s.Usage.CostSource != session.CostReported || *s.Usage.CostUSD != 0.5 {
		t.Errorf("%+v", s.Usage)
	}
}

// TestAReplyWithoutUsageMakesTheCostUnknown: neither what the other calls cost nor what the agent
// counted of them is the cost of all, and nothing at all is not $0.00.
func TestAReplyWithoutUsageMakesTheCostUnknown(t *testing.T) {
	cut := ok(nil, nil)
	cut.Outcome = calls.Cut
	stopped := ok(nil, nil)
	stopped.Outcome = calls.Budget
	half := ok(&session.TokenUsage{InputTokens: 9}, dollars(0.5))
	for name, seen := range map[string][]calls.Call{
		"without usage": {half, ok(nil, nil)}, "cut before it": {half, cut}, "stopped before it": {half, stopped},
	} {
		t.Run(name, func(t *testing.T) {
			s := readWire(t, seen...)
			if s.Usage.CostUSD != nil || s.Usage.CostSource != session.CostUnknown || !s.Usage.Partial {
				t.Errorf("%s: %+v", name, s.Usage)
			}
			var wire session.Wire
			wire.Add(seen[1])
			free := session.TokenUsage{CostUSD: dollars(0), CostSource: session.CostComputed}
			if u := wire.Usage(0, free); u.CostUSD != nil {
				t.Errorf("%s, alone: %+v", name, u)
			}
		})
	}
}

// TestAnImpossibleCountMakesTheCostUnknown: an agent repeats what it was told.
func TestAnImpossibleCountMakesTheCostUnknown(t *testing.T) {
	wrong := ok(nil, nil)
	wrong.Implausible = "1000000000000 tokens"
	for name, seen := range map[string][]calls.Call{
		"alone": {wrong}, "beside others": {ok(&session.TokenUsage{InputTokens: 9}, dollars(0.01)), wrong},
	} {
		t.Run(name, func(t *testing.T) {
			if s := readWire(t, seen...); s.Usage.CostUSD != nil || s.Usage.CostSource != session.CostUnknown {
				t.Errorf("%s: %+v", name, s.Usage)
			}
		})
	}
}

// TestAnAgentsWordIsNotLessThanWhatTheWireSaw: a call whose model has no price does not hide what
// the others cost.
func TestAnAgentsWordIsNotLessThanWhatTheWireSaw(t *testing.T) {
	unpriced := ok(&session.TokenUsage{InputTokens: 1}, nil)
	unpriced.Model = "unheard of"
	for name, other := range map[string]calls.Call{
		"unpriced":             unpriced,
		"unpriced, same model": ok(&session.TokenUsage{InputTokens: 1}, nil),
	} {
		t.Run(name, func(t *testing.T) {
			s := readWire(t, ok(&session.TokenUsage{InputTokens: 9}, dollars(3)), other)
			if s.Usage.CostSource != session.CostWire || *s.Usage.CostUSD != 3 || !s.Usage.Partial ||
				s.ReportedUsage == nil {
				t.Errorf("%s: %+v, cost %v", name, s.Usage, *s.Usage.CostUSD)
			}
		})
	}
}

func TestAReplayCostsNothing(t *testing.T) {
	call := ok(&session.TokenUsage{InputTokens: 100, OutputTokens: 10}, dollars(0))
	call.Outcome, call.OriginalUSD = calls.Replayed, dollars(0.125)
	s := readWire(t, call, call)
	if s.Usage.CostUSD == nil || *s.Usage.CostUSD != 0 || s.Usage.OutputTokens != 20 || s.OriginalCostUSD == nil ||
		*s.OriginalCostUSD != 0.25 {
		t.Errorf("%+v, original %v", s.Usage, s.OriginalCostUSD)
	}
	unpriced := call
	unpriced.OriginalUSD = nil
	if s := readWire(t, call, unpriced, call); s.OriginalCostUSD != nil {
		t.Errorf("one price is unknown, and the sum is %v", *s.OriginalCostUSD)
	}
}

func TestPromptsComeFromTheRecordOfCalls(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "agent.ndjson")
	w, err := calls.Create(calls.Path(path), calls.Config{})
	if err != nil {
		t.Fatal(err)
	}
	usage := &session.TokenUsage{InputTokens: 1}
	var seen []calls.Call
	for _, request := range []string{
		`{"system":[{"type":"text","text":"be kind"},{"type":"text","text":"today"}],"tools":[{"name":"Bash",` +
			`"description":"run","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"hi"}]}`,
		`{"system":[{"type":"text","text":"be kind","cache_control":{"type":"ephemeral"}},{"type":"text","text":"tomorrow"}],` +
			`"tools":[{"name":"Bash","description":"run","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"hi"}]}`,
		`{"instructions":"be kind","tools":[{"type":"web_search"}],"input":[{"role":"developer","content":[{"type":"input_text","text":"x"}]}]}`,
		`{"messages":[{"role":"system","content":"s"}],"tools":[{"type":"function","function":{"name":"f","description":"d"}}]}`,
	} {
		call := ok(usage, nil)
		call.Participant = "agent"
		seen = append(seen, call)
		if err := w.Append(call, []byte(request), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(wireTrace(t, seen...)), 0o600); err != nil {
		t.Fatal(err)
	}
	sessions, err := session.ReadFile(path, session.Dialects{session.StreamDialect("claude-code")}, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	prompt := func(turn int, label, content string) session.SystemPromptInjection {
		return session.SystemPromptInjection{Source: "wire", Label: label, Content: content, TurnIndex: turn}
	}
	want := []session.SystemPromptInjection{
		prompt(0, "system[0]", "be kind"), prompt(0, "system[1]", "today"),
		prompt(0, "tool Bash", "run\n{\n  \"type\": \"object\"\n}"),
		prompt(1, "system[1]", "tomorrow"),
		prompt(2, "instructions[0]", "be kind"), prompt(2, "tool web_search", ""), prompt(2, "developer[0]", "x"),
		prompt(2, "system[0]", ""), prompt(2, "system[1]", ""), prompt(2, "tool Bash", ""),
		prompt(3, "system[0]", "s"), prompt(3, "tool f", "d"),
		prompt(3, "instructions[0]", ""), prompt(3, "developer[0]", ""),
	}
	if diff := cmp.Diff(want, sessions[0].SystemPrompts); diff != "" {
		t.Error(diff)
	}
}

// TestAnAgentWhoseOnlyCallWasRefusedCostsNothing: a budget that lets no call through makes the cost
// known, and not unknown.
// the built-in agent counts answers: one that is stopped in its first call says 0.
func TestACallThatWasCutOffIsNotFree(t *testing.T) {
	var wire session.Wire
	wire.Add(calls.Call{Outcome: calls.Disconnected})
	word := session.TokenUsage{CostUSD: new(float64), CostSource: session.CostReported}
	if u := wire.Usage(0, word); u.CostUSD != nil || u.CostSource != session.CostUnknown {
		t.Errorf("%+v, want an unknown cost", u)
	}
}

func TestAnAgentWhoseOnlyCallWasRefusedCostsNothing(t *testing.T) {
	refused := calls.Call{Model: "m", Outcome: calls.Budget, Status: 400, Messages: 1}
	silent := ok(nil, nil)
	for name, test := range map[string]struct {
		seen []calls.Call
		want *float64
	}{
		"refused":                {[]calls.Call{refused}, dollars(0)},
		"refused and unanswered": {[]calls.Call{silent, refused}, nil},
		"nobody looked":          {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var wire session.Wire
			for _, call := range test.seen {
				wire.Add(call)
			}
			used := wire.Usage(0, session.TokenUsage{CostSource: session.CostUnknown})
			if diff := cmp.Diff(test.want, used.CostUSD); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			other := session.TokenUsage{TotalTokens: 5, InputTokens: 5, CostUSD: dollars(0.5)}
			if sum := other.Plus(used); (sum.CostUSD == nil) != (test.want == nil) {
				t.Errorf("%s: with another's cost it is %v", name, sum.CostUSD)
			}
		})
	}
}
