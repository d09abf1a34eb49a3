package session_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/fit-eval/fit/session"
)

var streamOnly = session.Dialects{session.StreamDialect("some-agent")}

// read enriches lines of the stream dialect.
func read(t testing.TB, lines ...string) *session.EnrichedSession {
	t.Helper()
	sessions, err := session.Read(strings.NewReader(strings.Join(lines, "\n")), streamOnly, session.Options{})
	if err != nil || len(sessions) != 1 {
		t.Fatalf("%d sessions, %v", len(sessions), err)
	}
	return sessions[0]
}

const initLine = `{"type":"system","subtype":"init","session_id":"s","cwd":"/repo","model":"m","tools":["Bash"],"mcp_servers":[],"xyz_version":"1.2.3"}`

func said(id, text string) string {
	return fmt.Sprintf(`{"type":"assistant","message":{"id":%q,"model":"m","content":[{"type":"text","text":%q}],"usage":{"input_tokens":10,"output_tokens":1}}}`, id, text)
}

// result is a closing line in which counters per model stand beside the usage since the last one.
func result(subtype string, isError bool, since, counted int, more string) string {
	return fmt.Sprintf(`{"type":"result","subtype":%q,"is_error":%v,"usage":{"input_tokens":%d,"output_tokens":0},"modelUsage":{"m":{"inputTokens":%d,"outputTokens":0,"costUSD":%g}}%s}`,
		subtype, isError, since, counted, float64(counted)/100, more)
}

// An agent can print any figure. Those that cannot be meant count for nothing: taken at their word
// they would lower what was spent, overflow the sum, or be more than JSON can say.
func TestFiguresThatCannotBeMeantAreIgnored(t *testing.T) {
	good := `{"type":"result","subtype":"success","usage":{"input_tokens":5,"output_tokens":1},"total_cost_usd":0.5}`
	for _, n := range []string{"1e400", "1e308", "-1", "9223372036854775807", "-9223372036854775808"} {
		for _, form := range []string{
			`{"type":"result","subtype":"success","usage":{"input_tokens":%[1]s,"output_tokens":1},"total_cost_usd":%[1]s}`,
			`{"type":"result","subtype":"success","usage":{"input_tokens":1},"modelUsage":{"m":{"inputTokens":%[1]s,"costUSD":%[1]s}}}`,
			`{"type":"result","subtype":"success","usage":{"input_tokens":1},"model_usage_since_last_result":{"m":{"inputTokens":1,"costUSD":%s}}}`,
		} {
			bad := fmt.Sprintf(form, n)
			s := read(t, initLine, bad, bad, good)
			if u := s.Usage; u.InputTokens != 5 || u.CostUSD == nil || *u.CostUSD != 0.5 || s.ParseErrors == 0 {
				t.Errorf("%s: %+v, cost %v, %d errors", bad, u, u.CostUSD, s.ParseErrors)
			}
		}
	}
}

// TestWhatIsCumulative pins the rule of each version: counters per process that start anew when a
// conversation is resumed, and figures since the last result.
func TestWhatIsCumulative(t *testing.T) {
	fresh := func(counted, since int) string {
		return result("success", false, since, counted,
			fmt.Sprintf(`,"model_usage_since_last_result":{"m":{"inputTokens":%d,"costUSD":%g}}`, since,
				float64(since)/100))
	}
	for name, test := range map[string]struct {
		lines []string
		want  int64
	}{
		"two prompts in one process": {[]string{
			result("success", false, 10, 10, ""),
			result("success", false, 20, 30, ""),
		}, 30},
		"resumed in a new process, counters start anew": {[]string{
			result("success", false, 10, 10, ""),
			result("success", false, 20, 20, ""),
		}, 30},
		"the same with smaller counters": {[]string{
			result("success", false, 50, 50, ""),
			result("success", false, 20, 20, ""),
		}, 70},
		"sub-agents are only in the counters": {[]string{
			result("success", false, 10, 25, ""),
			result("success", false, 10, 50, ""),
		}, 50},
		"a newer version goes on counting over a resume":     {[]string{fresh(10, 10), fresh(30, 20)}, 30},
		"a newer version, and only the resumed part is read": {[]string{fresh(30, 20)}, 20},
		"at a limit the last reply is only in the counters": {[]string{result("error_max_budget_usd", true, 20, 30,
			"")}, 30},
	} {
		t.Run(name, func(t *testing.T) {
			s := read(t, append([]string{initLine}, test.lines...)...)
			if s.Usage.InputTokens != test.want || s.Usage.CostUSD == nil ||
				math.Abs(*s.Usage.CostUSD-float64(test.want)/100) > 1e-9 {
				t.Errorf("usage: %+v, want %d tokens", s.Usage, test.want)
			}
		})
	}
}

func TestOutcomes(t *testing.T) {
	apiError := func(kind, text string) string {
		return fmt.Sprintf(`{"type":"assistant","message":{"model":"<synthetic>","content":[{"type":"text","text":%q}]},"error":%q}`, text, kind)
	}
	for name, test := range map[string]struct {
		lines   []string
		outcome session.Outcome
		kind    session.ErrorKind
	}{
		"done": {
			[]string{said("1", "ok"), result("success", false, 1, 1, "")},
			session.OutcomeSuccess, "",
		},
		"success that is an error": {[]string{result("success", true, 0, 0,
			`,"result":"boom","api_error_status":500`)}, session.OutcomeProvider, session.ErrorOverloaded},
		"rate limit": {[]string{
			apiError("rate_limit", "Request rejected (429)"),
			result("success", true, 0, 0, ""),
		}, session.OutcomeProvider, session.ErrorRateLimit},
		"not logged in": {[]string{
			apiError("authentication_failed", "Not logged in"),
			result("success", true, 0, 0, ""),
		}, session.OutcomeAuth, session.ErrorAuth},
		"too long a conversation": {
			[]string{apiError("invalid_request",
				"API Error: 400 prompt is too long: 210000 tokens"), result("success", true, 0, 0, "")},
			session.OutcomeError, session.ErrorContextOverflow,
		},
		"declined": {[]string{result("success", true, 0, 0,
			`,"stop_reason":"refusal","result":"no"`)}, session.OutcomeError, session.ErrorRefusal},
		"out of turns": {
			[]string{result("error_max_turns", true, 0, 0, "")},
			session.OutcomeMaxTurns,
			session.ErrorMaxTurns,
		},
		"out of money": {
			[]string{result("error_max_budget_usd", true, 0, 0, "")},
			session.OutcomeBudget,
			session.ErrorBudget,
		},
		"interrupted": {[]string{result("error_during_execution", true, 0, 0,
			`,"terminal_reason":"aborted_tools"`)}, session.OutcomeAborted, session.ErrorAborted},
		"a session that is not there": {[]string{result("error_during_execution", true, 0, 0,
			`,"errors":["No conversation found"]`)}, session.OutcomeError, session.ErrorOther},
		"killed": {[]string{said("1", "working")}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := read(t, append([]string{initLine}, test.lines...)...)
			if s.Outcome != test.outcome {
				t.Errorf("outcome %q, want %q", s.Outcome, test.outcome)
			}
			var kinds []session.ErrorKind
			for _, event := range s.Events {
				if event.Error != nil {
					kinds = append(kinds, event.Error.Kind)
				}
			}
			if test.kind == "" && len(kinds) > 0 || test.kind != "" && (len(kinds) != 1 || kinds[0] != test.kind) {
				t.Errorf("errors %v, want %q", kinds, test.kind)
			}
		})
	}
}

func TestAKilledRunKeepsItsFirstGuess(t *testing.T) {
	s := read(t, initLine, said("1", "a"), said("1", "b"), said("2", "c"))
	if u := s.Usage; u.InputTokens != 20 || !u.Partial || u.CostUSD != nil {
		t.Errorf("usage: %+v", u)
	}
	if s.AgentVersion != "1.2.3" {
		t.Errorf("version %q", s.AgentVersion)
	}
}

// TestAKilledRunIsPricedByItsFirstGuess: without a price, one killed agent would leave the cost of
// a whole experiment unknown.
func TestAKilledRunIsPricedByItsFirstGuess(t *testing.T) {
	prices := func(_ string, u session.TokenUsage, _ int64) (float64, bool) {
		return float64(u.TotalTokens) / 100, true
	}
	lines := []string{initLine, said("1", "a"), said("1", "b"), said("2", "c")}
	dialects := session.Dialects{session.StreamDialect("claude-code")}
	read := func() session.TokenUsage {
		sessions, err := session.Read(strings.NewReader(strings.Join(lines, "\n")), dialects,
			session.Options{Prices: prices})
		if err != nil {
			t.Fatal(err)
		}
		return sessions[0].Usage
	}
	u := read()
	if u.CostUSD == nil || *u.CostUSD != float64(u.TotalTokens)/100 || u.CostSource != session.CostEstimated {
		t.Errorf("a killed run: %+v", u)
	}
	lines = append(lines, `{"type":"result","subtype":"success","is_error":false,"result":"x","total_cost_usd":7,`+
		`"usage":{"input_tokens":50,"output_tokens":5}}`)
	if u := read(); *u.CostUSD != 7 || u.CostSource != session.CostReported || u.Partial {
		t.Errorf("a whole run: %+v", u)
	}
}

func TestWhatTheStreamInjects(t *testing.T) {
	s := read(t, initLine,
		`{"type":"user","message":{"content":[{"type":"text","text":"<system-reminder>be brief</system-reminder>"},{"type":"text","text":"hello"}]}}`,
		`{"type":"system","subtype":"compact_boundary","compact_metadata":{"trigger":"auto"}}`,
		`{"type":"system","subtype":"api_retry","attempt":2,"error_status":529,"error":"overloaded"}`)
	var labels []string
	for _, p := range s.SystemPrompts {
		labels = append(labels, p.Label)
	}
	if strings.Join(labels, " ") != "init reminder compaction" {
		t.Errorf("system prompts: %v", labels)
	}
	if len(s.Messages) != 1 || s.Messages[0].Text != "hello" {
		t.Errorf("messages: %+v", s.Messages)
	}
}
