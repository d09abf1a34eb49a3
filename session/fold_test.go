package session_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fit-eval/fit/session"
)

func at(ms int64) session.Origin { return session.Origin{NativeMs: 1_000_000 + ms} }

// TestMilestonesOfAWorkedExample follows a run that was worked out by hand.
func TestMilestonesOfAWorkedExample(t *testing.T) {
	f := session.NewFold(session.Options{StartMs: 1_000_000})
	call := func(ms int64, id, name, args string, failed bool) {
		f.ToolCall(at(ms), session.ToolUse{ID: id, Name: name, Args: []byte(args)})
		f.ToolResult(at(ms), session.Returned{CallID: id, IsError: failed})
	}
	call(400, "1", "Grep", `{"pattern":"Add"}`, false)
	call(900, "2", "Read", `{"file_path":"a.go"}`, false)
	call(2000, "3", "Edit", `{"file_path":"a.go"}`, true)
	call(2600, "4", "Edit", `{"file_path":"a.go"}`, false)
	call(4000, "5", "Bash", `{"command":"go test ./..."}`, true)
	call(5200, "6", "Edit", `{"file_path":"a.go"}`, false)
	call(6000, "7", "Bash", `{"command":"go test ./..."}`, false)
	f.Message(at(7000), "assistant", "Done.", "")
	f.Final(at(7100), session.Final{Outcome: session.OutcomeSuccess})
	f.Exited(0, false)
	f.Verified(session.VerifyResult{Passed: true, EndMs: 1_009_000})
	got := map[string]int64{}
	for _, m := range f.Session().Milestones {
		got[m.Kind] = m.ElapsedMs
	}
	want := map[string]int64{
		session.FirstSearch: 400, session.FirstFileRead: 900, session.FirstFileEdit: 2600,
		session.FirstErrorRecovery: 2600, session.FirstBashCommand: 4000,
		session.FirstTestRun: 4000, session.TaskCompletion: 7000, session.VerificationPass: 9000,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("milestones (-want +got):\n%s", diff)
	}
}

func TestMilestonesThatAreNotReached(t *testing.T) {
	for name, test := range map[string]struct {
		run  func(*session.Fold)
		kind string
	}{
		"a read outside the workspace": {func(f *session.Fold) {
			f.ToolCall(at(1), session.ToolUse{ID: "1", Name: "Read", Args: []byte(`{"file_path":"/etc/passwd"}`)})
		}, session.FirstFileRead},
		"an edit that failed": {func(f *session.Fold) {
			f.ToolCall(at(1), session.ToolUse{ID: "1", Name: "Edit", Args: []byte(`{"file_path":"a.go"}`)})
			f.ToolResult(at(2), session.Returned{CallID: "1", IsError: true})
		}, session.FirstFileEdit},
		"a build is no test": {func(f *session.Fold) {
			f.ToolCall(at(1), session.ToolUse{ID: "1", Name: "Bash", Args: []byte(`{"command":"go build ./..."}`)})
		}, session.FirstTestRun},
		"a success on another file is no recovery": {func(f *session.Fold) {
			f.ToolCall(at(1), session.ToolUse{ID: "1", Name: "Edit", Args: []byte(`{"file_path":"a.go"}`)})
			f.ToolResult(at(1), session.Returned{CallID: "1", IsError: true})
			f.ToolCall(at(2), session.ToolUse{ID: "2", Name: "Edit", Args: []byte(`{"file_path":"b.go"}`)})
			f.ToolResult(at(2), session.Returned{CallID: "2"})
		}, session.FirstErrorRecovery},
		"a recovery that took too long": {func(f *session.Fold) {
			f.ToolCall(at(1), session.ToolUse{ID: "1", Name: "Edit", Args: []byte(`{"file_path":"a.go"}`)})
			f.ToolResult(at(1), session.Returned{CallID: "1", IsError: true})
			for range 6 {
				f.Message(at(2), "user", "again", "")
				f.Message(at(2), "assistant", "hm", "")
			}
			f.ToolCall(at(3), session.ToolUse{ID: "2", Name: "Edit", Args: []byte(`{"file_path":"a.go"}`)})
			f.ToolResult(at(3), session.Returned{CallID: "2"})
		}, session.FirstErrorRecovery},
		"a run that failed is not completed": {func(f *session.Fold) {
			f.Message(at(1), "assistant", "I give up.", "")
			f.Final(at(2), session.Final{Outcome: session.OutcomeError})
		}, session.TaskCompletion},
		"a good answer with a bad exit code": {func(f *session.Fold) {
			f.Message(at(1), "assistant", "Done.", "")
			f.Final(at(2), session.Final{Outcome: session.OutcomeSuccess})
			f.Exited(1, false)
		}, session.TaskCompletion},
	} {
		t.Run(name, func(t *testing.T) {
			f := session.NewFold(session.Options{})
			f.Identify(session.Identity{Cwd: "/repo"})
			test.run(f)
			for _, m := range f.Session().Milestones {
				if m.Kind == test.kind {
					t.Errorf("%s was reached", test.kind)
				}
			}
		})
	}
}

func TestTurns(t *testing.T) {
	message := func(id string) session.Origin { return session.Origin{MessageID: id} }
	sub := session.Origin{Parent: "task", MessageID: "sub"}
	for name, test := range map[string]struct {
		run  func(*session.Fold)
		want int
	}{
		"nothing said": {func(f *session.Fold) { f.Message(at(1), "user", "hello", "") }, 0},
		"blocks of one message are one turn": {func(f *session.Fold) {
			f.Thinking(message("a"), "hm")
			f.ToolCall(message("a"), session.ToolUse{ID: "1", Name: "Read"})
			f.ToolResult(at(1), session.Returned{CallID: "1"})
			f.ToolCall(message("a"), session.ToolUse{ID: "2", Name: "Read"})
		}, 1},
		"another message is another turn": {func(f *session.Fold) {
			f.Message(message("a"), "assistant", "one", "")
			f.Message(message("b"), "assistant", "two", "")
		}, 2},
		"without ids a result ends a turn": {func(f *session.Fold) {
			f.Message(at(1), "assistant", "one", "")
			f.ToolCall(at(1), session.ToolUse{ID: "1", Name: "Read"})
			f.ToolResult(at(1), session.Returned{CallID: "1"})
			f.Message(at(1), "assistant", "two", "")
		}, 2},
		"sub-agents are part of the turn that called them": {func(f *session.Fold) {
			f.ToolCall(message("a"), session.ToolUse{ID: "task", Name: "Task"})
			f.Message(sub, "assistant", "looking", "")
			f.Message(message("b"), "assistant", "done", "")
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := session.NewFold(session.Options{})
			test.run(f)
			if got := f.Session().Turns; got != test.want {
				t.Errorf("%d turns, want %d", got, test.want)
			}
		})
	}
}

func usd(v float64) *float64 { return &v }

func tokens(in, out int64) session.TokenUsage {
	return session.TokenUsage{InputTokens: in, OutputTokens: out}
}

func TestUsageRules(t *testing.T) {
	prices := func(model string, u session.TokenUsage, _ int64) (float64, bool) {
		return float64(u.InputTokens) / 1000, model == "known"
	}
	for name, test := range map[string]struct {
		reports []session.UsageReport
		want    session.TokenUsage
	}{
		"deltas add up": {
			[]session.UsageReport{{Tokens: tokens(10, 1), CostUSD: usd(1)}, {Tokens: tokens(5, 1), CostUSD: usd(2)}},
			session.TokenUsage{
				InputTokens: 15, OutputTokens: 2, TotalTokens: 17, CostUSD: usd(3),
				CostSource: session.CostReported,
			},
		},
		"a message that is reported twice counts once": {
			[]session.UsageReport{
				{Rule: session.UsagePerMessage, Key: "a", Tokens: tokens(10, 1), CostUSD: usd(1)},
				{Rule: session.UsagePerMessage, Key: "a", Tokens: tokens(10, 7), CostUSD: usd(2)},
				{Rule: session.UsagePerMessage, Key: "b", Tokens: tokens(1, 1), CostUSD: usd(1)},
			},
			session.TokenUsage{
				InputTokens: 11, OutputTokens: 8, TotalTokens: 19, CostUSD: usd(3),
				CostSource: session.CostReported,
			},
		},
		"of a counter only the growth counts, also over resumes": {
			[]session.UsageReport{
				{Rule: session.UsageCumulative, Key: "t", Tokens: tokens(10, 1), CostUSD: usd(1)},
				{Rule: session.UsageCumulative, Key: "t", Tokens: tokens(30, 3), CostUSD: usd(3)},
			},
			session.TokenUsage{
				InputTokens: 30, OutputTokens: 3, TotalTokens: 33, CostUSD: usd(3),
				CostSource: session.CostReported,
			},
		},
		"a counter that went down began anew": {
			[]session.UsageReport{
				{Rule: session.UsageCumulative, Key: "t", Tokens: tokens(30, 3), CostUSD: usd(3)},
				{Rule: session.UsageCumulative, Key: "t", Tokens: tokens(10, 1), CostUSD: usd(1)},
			},
			session.TokenUsage{
				InputTokens: 40, OutputTokens: 4, TotalTokens: 44, CostUSD: usd(4),
				CostSource: session.CostReported,
			},
		},
		"a first guess counts until the figure comes": {
			[]session.UsageReport{
				{Rule: session.UsageProvisional, Key: "a", Tokens: tokens(10, 1)},
				{Rule: session.UsageProvisional, Key: "a", Tokens: tokens(10, 1)},
				{Tokens: tokens(10, 50), CostUSD: usd(1)},
				{Rule: session.UsageProvisional, Key: "b", Tokens: tokens(20, 1)},
			},
			session.TokenUsage{
				InputTokens: 30, OutputTokens: 51, TotalTokens: 81, CostSource: session.CostUnknown,
				Partial: true,
			},
		},
		"what the agent does not price is computed": {
			[]session.UsageReport{{Model: "known", Tokens: tokens(2000, 1)}},
			session.TokenUsage{
				InputTokens: 2000, OutputTokens: 1, TotalTokens: 2001, CostUSD: usd(2),
				CostSource: session.CostComputed,
			},
		},
		"tokens that are said to be free are priced": {
			[]session.UsageReport{{Model: "known", Tokens: tokens(2000, 1), CostUSD: usd(0)}},
			session.TokenUsage{
				InputTokens: 2000, OutputTokens: 1, TotalTokens: 2001, CostUSD: usd(2),
				CostSource: session.CostComputed,
			},
		},
		"one unknown price makes the sum unknown": {
			[]session.UsageReport{{Model: "known", Tokens: tokens(2000, 1)}, {Model: "other", Tokens: tokens(1, 1)}},
			session.TokenUsage{InputTokens: 2001, OutputTokens: 2, TotalTokens: 2003, CostSource: session.CostUnknown},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := session.NewFold(session.Options{Prices: prices})
			for _, report := range test.reports {
				f.Usage(session.Origin{}, report)
			}
			if diff := cmp.Diff(test.want, f.Session().Usage); diff != "" {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABaselineIsNotCounted(t *testing.T) {
	f := session.NewFold(session.Options{})
	f.Baseline("thread", tokens(100, 10))
	f.Usage(session.Origin{}, session.UsageReport{
		Rule: session.UsageCumulative, Key: "thread",
		Tokens: tokens(130, 13),
	})
	if u := f.Session().Usage; u.InputTokens != 30 || u.OutputTokens != 3 {
		t.Errorf("usage: %+v", u)
	}
}

// TestCostEventsAddUpToTheTotal holds for any mixture of reports but first guesses.
func TestCostEventsAddUpToTheTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := session.NewFold(session.Options{})
		for range rapid.IntRange(1, 30).Draw(t, "reports") {
			f.Usage(session.Origin{}, session.UsageReport{
				Rule: rapid.SampledFrom([]session.UsageRule{
					session.UsageDelta, session.UsagePerMessage,
					session.UsageCumulative,
				}).Draw(t, "rule"),
				Key:     rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"),
				Model:   rapid.SampledFrom([]string{"x", "y"}).Draw(t, "model"),
				Tokens:  tokens(rapid.Int64Range(0, 100).Draw(t, "in"), rapid.Int64Range(0, 100).Draw(t, "out")),
				CostUSD: usd(1),
			})
		}
		s := f.Session()
		var sum int64
		for _, event := range s.Events {
			sum += event.Usage.TotalTokens
		}
		if sum != s.Usage.TotalTokens {
			t.Fatalf("events say %d, the total %d", sum, s.Usage.TotalTokens)
		}
	})
}

func TestAFlatFoldKeepsNothingButTotals(t *testing.T) {
	seen := 0
	f := session.NewFold(session.Options{Flat: true, OnEvent: func(*session.EnrichedEvent) { seen++ }})
	for range 10_000 {
		f.Message(session.Origin{MessageID: "m"}, "assistant", "words", "")
	}
	s := f.Session()
	if seen != 10_000 || len(s.Events) != 0 || len(s.Messages) != 0 || s.FinalText != "words" {
		t.Errorf("saw %d events, kept %d and %d messages, last words %q", seen, len(s.Events), len(s.Messages),
			s.FinalText)
	}
}

// TestEventsBelongToTheirReader: a reader may keep what it is shown, whatever the decoder does with
// its buffers afterwards.
func TestEventsBelongToTheirReader(t *testing.T) {
	for _, flat := range []bool{false, true} {
		var kept []*session.EnrichedEvent
		fold := session.NewFold(session.Options{Flat: flat, OnEvent: func(e *session.EnrichedEvent) {
			kept = append(kept, e)
		}})
		decoder := session.StreamDialect("claude-code").New()
		line := make([]byte, 0, 1<<10)
		for i, said := range []string{
			`{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"first \u0041"}]}}`,
			`{"type":"assistant","message":{"id":"m2","content":[{"type":"tool_use","id":"t1","name":"Bash",` +
				`"input":{"command":"ls one"}}]}}`,
			`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"a file"}]}}`,
			`{"type":"assistant","message":{"id":"m3","content":[{"type":"text","text":"second \u0042"}]}}`,
		} {
			line = append(line[:0], said...)
			decoder.Decode(line, session.Stamp{Line: int64(i + 1), Lane: "agent"}, fold)
			for at := range line {
				line[at] = '#'
			}
		}
		var got []string
		for _, e := range kept {
			switch e.Kind {
			case session.KindMessage:
				got = append(got, e.MessageID+" "+e.Text)
			case session.KindToolCall:
				got = append(got, e.Tool.CallID+" "+e.Tool.NativeName+" "+e.Tool.Command+" "+string(e.Tool.Args))
			case session.KindToolResult:
				got = append(got, e.Result.CallID+" "+e.Result.Content)
			}
		}
		want := []string{"m1 first A", `t1 Bash ls one {"command":"ls one"}`, "t1 a file", "m3 second B"}
		if !slices.Equal(got, want) {
			t.Errorf("flat %t: kept %q, want %q", flat, got, want)
		}
	}
}
