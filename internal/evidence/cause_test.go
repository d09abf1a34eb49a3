package evidence

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

var (
	edited  = modified("a.go", "-a", "+b")
	failing = ledger.Record{Verdict: ledger.Fail, Verify: &ledger.Verify{ExitCode: 1}}
)

// failed are the facts about an attempt that did something and failed.
func failed(record ledger.Record, diff string, task Task, acts ...act) *facts {
	f := known(task, record, diff)
	f.seen, f.session = played(f.task, []string{"a.go"}, "", acts...)
	return f
}

func withRows(list ...string) ledger.Record {
	record := failing
	record.HiddenTests = &ledger.HiddenTests{}
	for _, row := range list {
		record.HiddenTests.Details = append(record.HiddenTests.Details, json.RawMessage(row))
	}
	return record
}

func repeat(n int, a act) []act { return slices.Repeat([]act{a}, n) }

func TestAttribution(t *testing.T) {
	overloaded := act{tool: "error", arg: string(session.ErrorOverloaded), output: "529 overloaded"}
	overflow := act{tool: "error", arg: string(session.ErrorContextOverflow), output: "prompt is too long"}
	ended := func(f *facts, outcome session.Outcome) *facts { f.session.Outcome = outcome; return f }
	distinct := func(n int) (acts []act) {
		for i := range n {
			acts = append(acts, act{tool: "say", arg: strings.Repeat("hm ", i+1)})
		}
		return acts
	}
	for name, v := range map[string]struct {
		facts    *facts
		category string
		tier     string
	}{
		"the service failed": {
			ended(failed(failing, edited, Task{}, bash("ls"), overloaded), session.OutcomeError),
			causeProviderError, tierEnvironmental,
		},
		"the service failed and came back": {
			failed(failing, edited, Task{}, overloaded, bash("ls")), CauseWrongFix,
			tierCapability,
		},
		"the ledger says so": {
			failed(ledger.Record{Verdict: ledger.Error, ErrorClass: ledger.ErrorProvider}, "", Task{}),
			causeProviderError, tierEnvironmental,
		},
		"credentials": {ended(failed(failing, "", Task{}), session.OutcomeAuth), causeProviderError, tierEnvironmental},
		"setup failed": {
			failed(ledger.Record{Verdict: ledger.Error, ErrorClass: ledger.ErrorSetup}, "", Task{}),
			CauseHarnessError, tierEnvironmental,
		},
		"verify did not start": {
			failed(ledger.Record{Verdict: ledger.Fail, Verify: &ledger.Verify{Error: "no sh"}}, edited, Task{}),
			CauseHarnessError, tierEnvironmental,
		},
		"its shell says that a program is missing": {
			failed(failing, edited, Task{VerifyCommand: "cargo test"},
				act{tool: "bash", arg: "cargo test", output: "sh: 1: cargo: not found", failed: true}),
			CauseWrongFix,
			tierCapability,
		},
		"killed by the clock": {
			ended(failed(failing, "", Task{}, repeat(9, bash("ls"))...), session.OutcomeTimeout),
			CauseTimeout, tierResource,
		},
		"the conversation is too long": {
			failed(failing, edited, Task{}, bash("ls"), overflow), causeContextExhausted,
			tierResource,
		},
		"two compactions and no end": {ended(failed(failing, edited, Task{}, act{tool: "compaction"},
			act{tool: "compaction"}),
			session.OutcomeNoResult), causeContextExhausted, tierResource},
		"two compactions and an end": {
			failed(failing, edited, Task{}, act{tool: "compaction"}, act{tool: "compaction"}),
			CauseWrongFix, tierCapability,
		},
		"too many turns": {
			ended(failed(failing, edited, Task{}), session.OutcomeMaxTurns), CauseBudgetOrLoop,
			tierResource,
		},
		"five equal calls": {
			failed(failing, "", Task{}, repeat(5, bash("./x"))...), CauseBudgetOrLoop,
			tierResource,
		},
		"four equal calls": {
			failed(failing, "", Task{}, repeat(4, bash("./x"))...), CauseNoChange,
			tierCapability,
		},
		"five rounds of edit and test": {
			failed(failing, edited, Task{}, rounds(5)...), CauseWrongFix, tierCapability,
		},
		"five equal edits": {
			failed(failing, edited, Task{}, repeat(5, act{tool: "edit", arg: "a.go"})...), CauseBudgetOrLoop,
			tierResource,
		},
		"ten turns of nothing":  {failed(failing, edited, Task{}, distinct(10)...), CauseBudgetOrLoop, tierResource},
		"nine turns of nothing": {failed(failing, edited, Task{}, distinct(9)...), CauseWrongFix, tierCapability},
		"nothing changed":       {failed(failing, "", Task{}, bash("ls")), CauseNoChange, tierCapability},
		"a test fails that passed": {failed(withRows(`{"test":"old","pass":false}`, `{"test":"new","pass":true}`), edited,
			Task{PassingAtBase: []string{"old"}}), causeRegression, tierCapability},
		"some checks pass": {
			failed(withRows(`{"test":"a","pass":false}`, `{"test":"b","pass":true}`), edited, Task{}),
			CauseIncompleteFix, tierCapability,
		},
		"only what passed before passes": {failed(withRows(`{"test":"a","pass":false}`, `{"test":"b","pass":true}`), edited,
			Task{PassingAtBase: []string{"b"}}), CauseWrongFix, tierCapability},
		"the wrong change": {failed(failing, edited, Task{}), CauseWrongFix, tierCapability},
	} {
		t.Run(name, func(t *testing.T) {
			got := v.facts.attribution()
			if got == nil || got.Category != v.category || got.Tier != v.tier || len(got.Evidence) == 0 ||
				got.Method != MethodHeuristic || got.Confidence <= 0 {
				t.Errorf("%s: %+v, want %s", name, got, v.category)
			}
		})
	}
}

// TestGarbageDoesNotExcuse: an agent that worked and prints garbage has failed; one that printed
// nothing else was not measured.
func TestGarbageDoesNotExcuse(t *testing.T) {
	f := failed(failing, edited, Task{}, bash("ls"))
	f.session.ParseErrors = 1000
	if got := f.attribution(); got.Category != CauseWrongFix {
		t.Errorf("with turns: %s", got.Category)
	}
	f = failed(failing, "", Task{})
	f.session.ParseErrors = 1000
	if got := f.attribution(); got.Category != CauseHarnessError {
		t.Errorf("without turns: %s", got.Category)
	}
}

func TestTags(t *testing.T) {
	look := []act{bash("ls"), bash("cat a.go"), bash("rg x"), bash("cat b.go")}
	for tag, acts := range map[string][]act{
		tagUnverified:      {{tool: "edit", arg: "a.go"}},
		tagEditFailures:    {{tool: "read", arg: "a.go"}, {tool: "edit", arg: "a.go", failed: true}},
		tagEditWithoutRead: {{tool: "edit", arg: "a.go", failed: true, output: "could not find the exact text"}},
		tagExploration:     append(look, bash("make x")),
		tagReminderLoop:    repeat(3, act{tool: "reminder", arg: "Go on."}),
		tagUnknownCommand:  {{tool: "bash", arg: "/review", output: "bash: /review: command not found", failed: true}},
		tagFalseSuccess:    {{tool: "say", arg: "I fixed the race."}},
	} {
		t.Run(tag, func(t *testing.T) {
			f := failed(failing, edited, Task{}, acts...)
			if tags := f.tags(); !slices.Contains(tags, tag) {
				t.Errorf("%s is missing: %v", tag, tags)
			}
			calm := failed(failing, edited, Task{}, act{tool: "read", arg: "a.go"}, act{tool: "edit", arg: "a.go"},
				bash("go test"), bash("make x"), act{tool: "say", arg: "I could not fix it."})
			if tags := calm.tags(); len(tags) != 0 {
				t.Errorf("a calm attempt: %v", tags)
			}
		})
	}
}

// rounds are attempts at a fix, each tested with the same command.
func rounds(n int) []act {
	var acts []act
	for i := range n {
		acts = append(acts, act{tool: "edit", arg: fmt.Sprintf("part%d.go", i)}, bash("go test ./..."))
	}
	return acts
}

func TestWhatClaimsSuccess(t *testing.T) {
	for text, claims := range map[string]bool{
		"I fixed the race.":                       true,
		"The work is done and all tests pass":     true,
		"All tests pass, no errors remain.":       true,
		"Nothing is done.":                        false,
		"None of it is fixed":                     false,
		"It isn't solved.":                        false,
		"The fix was never completed":             false,
		"No test passes, so no part is done yet.": false,
		"This is only partially implemented.":     false,
	} {
		t.Run(text, func(t *testing.T) {
			if got := claimsSuccess(text); got != claims {
				t.Errorf("%q claims success: %v", text, got)
			}
		})
	}
}

func TestOnlyTheLastThreeMayBeRanked(t *testing.T) {
	var may []string
	for _, c := range causes {
		if Rerankable(c.category) {
			may = append(may, c.category)
		}
	}
	if got := strings.Join(may, " "); got != "regression incomplete_fix wrong_fix" || len(causes) != 9 {
		t.Errorf("a model may rank %s of %d", got, len(causes))
	}
}
