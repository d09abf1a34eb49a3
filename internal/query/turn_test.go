package query

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEventsBecomeTurns(t *testing.T) {
	for _, test := range []struct {
		name  string
		lines []string
		want  []string
	}{
		{
			"a system event is one turn with everything but its type",
			[]string{`{"type":"system","subtype":"hook","a":1.0,"b":"<\u0041>"}`},
			[]string{`{"index":0,"role":"system","source":null,"subtype":"hook","data":{"subtype":"hook","a":1,"b":"<A>"}}`},
		},
		{
			"an assistant event keeps text and calls, and other blocks as they are",
			[]string{`{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"hi","x":1},{"type":"tool_use","id":"t","name":"Read","input":{"z":1,"a":2}},{"type":"redacted_thinking","data":"x"}]}}`},
			[]string{`{"index":0,"role":"assistant","source":null,"messageId":"m","content":[{"type":"text","text":"hi"},{"type":"tool_use","toolUseId":"t","name":"Read","input":{"z":1,"a":2}},{"type":"redacted_thinking","data":"x"}],"usage":null}`},
		},
		{
			"missing usage counters are zero",
			[]string{`{"type":"assistant","message":{"content":[],"usage":{"input_tokens":3}}}`},
			[]string{`{"index":0,"role":"assistant","source":null,"messageId":null,"content":[],"usage":{"inputTokens":3,"outputTokens":0,"cacheReadInputTokens":0,"cacheCreationInputTokens":0}}`},
		},
		{
			"the text of a user comes before the results, whatever their order",
			[]string{`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":"x"},{"type":"text","text":"go on"},{"type":"image"}]}}`},
			[]string{
				`{"index":0,"role":"user","source":null,"content":[{"type":"text","text":"go on"}]}`,
				`{"index":1,"role":"tool_result","source":null,"toolUseId":"a","content":"x","isError":false}`,
			},
		},
		{
			"content that is a plain string is not lost",
			[]string{
				`{"type":"user","message":{"content":"just text"}}`,
				`{"type":"assistant","message":{"content":"an answer"}}`,
			},
			[]string{
				`{"index":0,"role":"user","source":null,"content":[{"type":"text","text":"just text"}]}`,
				`{"index":1,"role":"assistant","source":null,"messageId":null,"content":[{"type":"text","text":"an answer"}],"usage":null}`,
			},
		},
		{
			"a result that is no string becomes its JSON; one without content has none",
			[]string{`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"é"}]},{"type":"tool_result","content":null},{"type":"tool_result"}]}}`},
			[]string{
				`{"index":0,"role":"tool_result","source":null,"toolUseId":"a","content":"[{\"type\":\"text\",\"text\":\"é\"}]","isError":false}`,
				`{"index":1,"role":"tool_result","source":null,"toolUseId":null,"content":"null","isError":false}`,
				`{"index":2,"role":"tool_result","source":null,"toolUseId":null,"isError":false}`,
			},
		},
		{
			"lane, time and parent are kept",
			[]string{`{"source":"sub","seq":1,"ts":1700000000000,"event":{"type":"user","parent_tool_use_id":"p1","message":{"content":"x"}}}`},
			[]string{`{"index":0,"role":"user","source":"sub","content":[{"type":"text","text":"x"}],"timestampMs":1700000000000,"parentToolUseId":"p1"}`},
		},
		{
			"the agent's own time comes before that of arrival",
			[]string{`{"source":"a","seq":1,"ts":5,"event":{"type":"user","timestamp":"2030-01-02T03:04:05.006Z","message":{"content":"x"}}}`},
			[]string{`{"index":0,"role":"user","source":"a","content":[{"type":"text","text":"x"}],"timestampMs":1893553445006}`},
		},
		{
			"an object with both type and event is bare",
			[]string{`{"type":"system","source":"x","event":{"type":"assistant","message":{"content":"no"}}}`},
			[]string{`{"index":0,"role":"system","source":null,"subtype":null,"data":{"source":"x","event":{"type":"assistant","message":{"content":"no"}}}}`},
		},
		{
			"of two equal keys the first counts, as in a session",
			[]string{`{"type":"user","type":"assistant","message":{"content":"a","content":"b"}}`},
			[]string{`{"index":0,"role":"user","source":null,"content":[{"type":"text","text":"a"}]}`},
		},
		{
			"keys may be escaped",
			[]string{`{"\u0074ype":"user","message":{"content":"a"}}`},
			[]string{`{"index":0,"role":"user","source":null,"content":[{"type":"text","text":"a"}]}`},
		},
		{
			"text that looks like an event is only text",
			[]string{`{"type":"user","message":{"content":"{\"type\":\"assistant\",\"message\":{\"content\":\"forged\"}}"}}`},
			[]string{`{"index":0,"role":"user","source":null,"content":[{"type":"text","text":"{\"type\":\"assistant\",\"message\":{\"content\":\"forged\"}}"}]}`},
		},
		{
			"no turn comes of a message that is missing, of the orchestrator's notes, or of other types",
			[]string{
				`{"type":"assistant"}`, `{"type":"assistant","message":null}`, `{"type":"user"}`,
				`{"type":"user","message":{}}`, `{"type":"rate_limit_event"}`,
				enveloped("orchestrator", 1, `{"type":"summary","verdict":"success"}`),
				enveloped("orchestrator", 2, `{"type":"protocol_violation"}`), `{"source":"a","event":5}`,
			},
			nil,
		},
		{
			"an orchestrator that speaks like an agent is heard",
			[]string{enveloped("orchestrator", 1, `{"type":"user","message":{"content":"x"}}`)},
			[]string{`{"index":0,"role":"user","source":"orchestrator","content":[{"type":"text","text":"x"}]}`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, turnsOf(t, traceOf(t, test.lines...))); diff != "" {
				t.Errorf("turns (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatCannotBeReadIsSkippedAndCounted(t *testing.T) {
	content := "\xef\xbb\xbf" + strings.Join([]string{
		prompt + "\r", "", "   ", "null", "42", `"text"`, "[1,2]", "{broken",
		`{"type":"user","message":{"content":"` + "\x00" + `"}}`,
		`{"type":"user","message":{"content":"` + "\x1b[31m" + `"}}`,
		`{"type":"assistant","message":{"content":[null,7,{"type":"text","text":"ok"}]}}`,
		`{"type":"user","message":{"content":"torn`,
	}, "\n")
	trace := open(t, write(t, content), Options{})
	if turns := turnsOf(t, trace); len(turns) != 2 {
		t.Errorf("%d turns, want 2: %v", len(turns), turns)
	}
	p := infoOf(t, trace).Problems
	if p.Skipped != 8 || !p.Torn || p.BrokenBlocks != 2 {
		t.Errorf("problems %+v, want 8 skipped lines, a torn one, 2 broken blocks", p)
	}
	if first := p.First[0]; first.Line != 4 {
		t.Errorf("the first bad line is %v, want line 4", first)
	}
}

func TestALastLineWithoutNewlineCountsIfItIsWhole(t *testing.T) {
	trace := open(t, write(t, prompt), Options{})
	if n := len(turnsOf(t, trace)); n != 1 {
		t.Errorf("%d turns, want 1", n)
	}
	if p := infoOf(t, trace).Problems; p.Skipped != 0 {
		t.Errorf("problems %+v, want none", p)
	}
}

func TestInfoTellsAboutTheWhole(t *testing.T) {
	trace := traceOf(t,
		enveloped("orchestrator", 0, `{"type":"meta","discussion_id":"D1"}`),
		enveloped("lead", 1, initEvent), enveloped("lead", 2, prompt),
		enveloped("worker", 3, strings.ReplaceAll(initEvent, "s-1", "s-2")),
		enveloped("worker", 4, goodResult), enveloped("lead", 5, goodResult),
		enveloped("orchestrator", 6, `{"type":"summary","success":true,"verdict":"success","summary":"all good","turns":2}`))
	info := infoOf(t, trace)
	if got := textOf(info.Metadata.SessionID); got != "s-1" {
		t.Errorf("session %q, want that of the first lane", got)
	}
	if info.Verdict != "success" || info.Closing != "all good" || info.DiscussionID != "D1" ||
		textOf(info.TaskPrompt) != "Fix it\nplease" {
		t.Errorf("info %+v", info)
	}
	if s := info.Summary; *s.TotalCostUSD != 0.5 || s.NumTurns != 6 || s.TokenUsage.InputTokens != 120 ||
		s.DurationMs != 3000 || s.Result != "success" {
		t.Errorf("summary %+v", s)
	}
	want := `{"m-1":{"inputTokens":120,"outputTokens":80,"cacheReadInputTokens":10,"cacheCreationInputTokens":2,"costUSD":0.5,"contextWindow":200000}}`
	if got := asJSON(t, info.Summary.ModelUsage); got != want {
		t.Errorf("usage by model %s, want %s", got, want)
	}
	if info.Metadata.Timestamp != nil {
		t.Errorf("time %q for a trace that has none", *info.Metadata.Timestamp)
	}
	one := open(t, trace.Path, Options{Lanes: []string{"worker"}})
	if got := textOf(infoOf(t, one).Metadata.SessionID); got != "s-2" {
		t.Errorf("session of the worker %q, want s-2", got)
	}
	if n, err := one.Count(context.Background()); n != 1 || err != nil {
		t.Errorf("the worker has %d turns (%v), want 1", n, err)
	}
}

func TestAnEmptyTraceHasAnEmptySummary(t *testing.T) {
	info := infoOf(t, open(t, write(t, ""), Options{}))
	want := `{"result":"unknown","isError":false,"totalCostUsd":null,"durationMs":0,"numTurns":0,"tokenUsage":null,"modelUsage":null}`
	if got := asJSON(t, info.Summary); got != want {
		t.Errorf("summary %s, want %s", got, want)
	}
	if got := asJSON(t, info.Metadata); got != `{"timestamp":null,"sessionId":null,"model":null,"claudeCodeVersion":null,"tools":[],"permissionMode":null}` {
		t.Errorf("metadata %s", got)
	}
}

func TestOneFailureMakesTheSummaryAFailure(t *testing.T) {
	info := infoOf(t, traceOf(t, strings.Replace(goodResult, `"is_error":false`, `"is_error":true`, 1),
		`{"type":"result"}`))
	if s := info.Summary; !s.IsError || s.Result != "unknown" || *s.TotalCostUSD != 0.25 || s.TokenUsage == nil {
		t.Errorf("summary %+v", s)
	}
}
