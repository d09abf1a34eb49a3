package pi

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/session/sessiontest"
)

// said is an answer of the model, as a message_end event.
func said(stopReason, rest string) string {
	return `{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"Hm."}],"model":"m","stopReason":"` + stopReason + `","timestamp":1` + rest + `}}`
}

func enrich(t testing.TB, lines ...string) *session.EnrichedSession {
	t.Helper()
	sessions, err := session.Read(strings.NewReader(strings.Join(lines, "\n")), New().Dialects(), session.Options{})
	if err != nil || len(sessions) != 1 {
		t.Fatalf("%d sessions, %v", len(sessions), err)
	}
	return sessions[0]
}

func errorKinds(s *session.EnrichedSession) string {
	var kinds []string
	for _, event := range s.Events {
		if event.Error != nil {
			kinds = append(kinds, string(event.Error.Kind))
		}
	}
	return strings.Join(kinds, " ")
}

const (
	begin = `{"type":"agent_start"}`
	end   = `{"type":"agent_end","messages":[]}`
)

func TestHowAPromptEnds(t *testing.T) {
	failed := said("error", `,"errorMessage":"529 Overloaded"`)
	retry := `{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":1,"errorMessage":"529 Overloaded"}`
	for name, test := range map[string]struct {
		lines   []string
		outcome session.Outcome
		errors  string
	}{
		"well":                   {[]string{begin, said("stop", ""), end}, session.OutcomeSuccess, ""},
		"by a tool that ends it": {[]string{begin, said("toolUse", ""), end}, session.OutcomeSuccess, ""},
		"cut off":                {[]string{begin, said("length", ""), end}, session.OutcomeError, "other"},
		"aborted":                {[]string{begin, said("aborted", ""), end}, session.OutcomeAborted, "aborted"},
		"failed":                 {[]string{begin, failed, end}, session.OutcomeProvider, "overloaded"},
		"given up": {[]string{
			begin, failed, end, retry, begin, failed, end,
			`{"type":"auto_retry_end","success":false,"attempt":1}`,
		}, session.OutcomeProvider, "retry overloaded"},
		"well after a retry": {[]string{
			begin, failed, end, retry, begin, said("stop", ""),
			`{"type":"auto_retry_end","success":true,"attempt":1}`, end,
		}, session.OutcomeSuccess, "retry"},
		"killed while waiting": {[]string{begin, failed, end, retry}, "", "retry"},
		"aborted while waiting": {
			[]string{
				begin, failed, end, retry,
				`{"type":"auto_retry_end","success":false,"attempt":1,"finalError":"Retry cancelled"}`,
			},
			session.OutcomeAborted, "retry aborted",
		},
		"bad key": {
			[]string{begin, said("error", `,"errorMessage":"401 invalid x-api-key"`), end},
			session.OutcomeAuth, "auth",
		},
		"prompt refused": {[]string{`{"type":"response","command":"prompt","success":false,"error":"No API key found for anthropic."}`}, session.OutcomeAuth, "auth"},
		"another command refused": {
			[]string{
				begin, said("stop", ""), end,
				`{"type":"response","command":"compact","success":false,"error":"Nothing to compact"}`,
			},
			session.OutcomeSuccess, "api",
		},
		"without a message": {[]string{begin, end}, session.OutcomeError, ""},
		"message in the last event": {[]string{
			begin,
			`{"type":"agent_end","messages":[{"role":"assistant","stopReason":"stop"}]}`,
		}, session.OutcomeSuccess, ""},
		"does not fit, fits after all": {[]string{
			begin, said("error", `,"errorMessage":"400 prompt is too long"`), end,
			`{"type":"compaction_start"}`, `{"type":"compaction_end","result":{"summary":"S"},"willRetry":true}`, begin,
			said("stop", ""), end,
		}, session.OutcomeSuccess, "context_overflow"},
		"does not fit": {
			[]string{
				begin, said("error", `,"errorMessage":"400 prompt is too long"`), end,
				`{"type":"compaction_start"}`, `{"type":"compaction_end","errorMessage":"no","willRetry":false}`,
			},
			session.OutcomeError, "context_overflow warning",
		},
		"compacted in between": {[]string{
			begin, said("stop", ""), end, `{"type":"compaction_start"}`,
			`{"type":"compaction_end","result":{"summary":"S"},"willRetry":false}`,
		}, session.OutcomeSuccess, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := enrich(t, test.lines...)
			if s.Outcome != test.outcome || errorKinds(s) != test.errors {
				t.Errorf("outcome %q, errors %q; want %q, %q", s.Outcome, errorKinds(s), test.outcome, test.errors)
			}
		})
	}
}

func TestCostOfNothingIsNotBelieved(t *testing.T) {
	prices := func(_ string, u session.TokenUsage, _ int64) (float64, bool) { return float64(u.TotalTokens), true }
	for name, test := range map[string]struct {
		cost   string
		want   float64
		source string
	}{
		"reported": {"0.25", 0.25, session.CostReported},
		"nothing":  {"0", 15, session.CostComputed},
		"negative": {"-3", 15, session.CostComputed},
	} {
		t.Run(name, func(t *testing.T) {
			line := said("stop", `,"usage":{"input":10,"output":5,"cacheRead":0,"cacheWrite":0,"cost":{"total":`+test.cost+
				`}}`)
			sessions, err := session.Read(strings.NewReader(begin+"\n"+line), New().Dialects(),
				session.Options{Prices: prices})
			if err != nil {
				t.Fatal(err)
			}
			if u := sessions[0].Usage; u.CostUSD == nil || *u.CostUSD != test.want || u.CostSource != test.source {
				t.Errorf("%s: %+v", name, u)
			}
		})
	}
}

func TestAnIDThatIsUsedAgainIsANewCall(t *testing.T) {
	call := `{"type":"message_end","message":{"role":"assistant","content":[{"type":"toolCall","id":"call_0","name":"bash","arguments":{"command":"ls"}}],"stopReason":"toolUse"}}`
	start := `{"type":"tool_execution_start","toolCallId":"call_0","toolName":"bash","args":{"command":"ls"}}`
	done := `{"type":"tool_execution_end","toolCallId":"call_0","toolName":"bash","result":{"content":[{"type":"text","text":"no\n\nCommand exited with code 2"}]},"isError":true}`
	message := `{"type":"message_end","message":{"role":"toolResult","toolCallId":"call_0","content":[{"type":"text","text":"x"}],"isError":true}}`
	s := enrich(t, begin, call, start, done, message, call, start, done, message)
	var calls, results []int
	for _, event := range s.Events {
		if event.Tool != nil {
			calls = append(calls, event.TurnIndex)
		}
		if event.Result != nil {
			results = append(results, *event.Result.ExitCode)
		}
	}
	if diff := cmp.Diff([][]int{{1, 2}, {2, 2}}, [][]int{calls, results}); diff != "" {
		t.Errorf("turns of the calls, exit codes of the results (-want +got):\n%s", diff)
	}
}

func TestMessagesInATraceAreNotToldTwice(t *testing.T) {
	user := `{"type":"message_end","message":{"role":"user","content":"Do it","timestamp":1}}`
	trace := `{"source":"orchestrator","seq":0,"ts":1,"event":{"type":"prompt","agent":"w","text":"Do it"}}
{"source":"w","seq":1,"ts":2,"event":{"type":"agent_start"}}
{"source":"w","seq":2,"ts":3,"event":` + user + `}`
	for name, s := range map[string]*session.EnrichedSession{
		"bare":  enrich(t, begin, user),
		"trace": enrich(t, strings.Split(trace, "\n")...),
	} {
		t.Run(name, func(t *testing.T) {
			if len(s.Messages) != 1 || s.Messages[0].Text != "Do it" {
				t.Errorf("%s: %+v", name, s.Messages)
			}
		})
	}
}

func TestOnlyRepeatingLinesAreDropped(t *testing.T) {
	for _, file := range sessiontest.Recordings(t, "testdata/0.73.1/*.jsonl") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) == 0 || bytes.HasPrefix(data, []byte(`{"dir"`)) {
			continue
		}
		var kept []string
		for line := range bytes.Lines(data) {
			if !repeats(line) {
				kept = append(kept, string(line))
			}
		}
		before, after := sessiontest.Page(t, file, New().Dialects()), t.TempDir()+"/kept.jsonl"
		if err := os.WriteFile(after, []byte(strings.Join(kept, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, sessiontest.Page(t, after, New().Dialects())); diff != "" {
			t.Errorf("%s: without the repeating lines (-before +after):\n%s", file, diff)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, dir := range recorded {
		for _, file := range sessiontest.Recordings(f, "testdata/"+dir+"/*.jsonl") {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data[:min(len(data), 16<<10)])
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, dialect := range New().Dialects() {
			fold, decoder := session.NewFold(session.Options{}), dialect.New()
			for number, line := range bytes.Split(data, []byte("\n")) {
				dialect.Recognise(line)
				decoder.Decode(line, session.Stamp{Line: int64(number)}, fold)
			}
			decoder.(session.Finisher).Finish(fold)
			sessiontest.Sound(t, fold.Session())
		}
	})
}

// BenchmarkEnrich reads what a trace holds of the recordings over and over, as one long stream, in
// flat memory.
func BenchmarkEnrich(b *testing.B) {
	var kept bytes.Buffer
	for _, file := range sessiontest.Recordings(b, "testdata/0.73.1/[a-h]*.jsonl") {
		data, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			if !repeats(line) {
				kept.Write(line)
			}
		}
	}
	all := bytes.Repeat(kept.Bytes(), 64)
	b.SetBytes(int64(len(all)))
	for b.Loop() {
		enricher := &session.Enricher{Dialects: New().Dialects(), Options: session.Options{Flat: true}}
		if err := enricher.Read(bytes.NewReader(all)); err != nil {
			b.Fatal(err)
		}
		if sessions := enricher.Sessions(); len(sessions) != 1 || sessions[0].Turns == 0 {
			b.Fatal("nothing was read")
		}
	}
}
