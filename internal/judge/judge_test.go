package judge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/session"
)

// fixture is the patch of the specification's example.
const fixture = "--- a/x.go\n+++ b/x.go\n@@ -10,3 +10,4 @@\n ctx\n-old\n+new1\n+new2\n ctx2\n"

// longFixture has lines of more than eight characters.
const longFixture = `diff --git a/x.go b/x.go
--- a/x.go
+++ b/x.go
@@ -10,3 +10,4 @@ func add
 func add(a, b int) int {
-	return a - b
+	sum := a +   b
+	return sum // done
 }
diff --git a/gone.go b/gone.go
deleted file mode 100644
--- a/gone.go
+++ /dev/null
@@ -1,2 +0,0 @@
-package gone
-var removedThing = 1
`

// subject is a run with everything in it.
func subject(task, arm string, run int) Subject {
	r := &evidence.Run{
		Agent:  "claude-code",
		Status: evidence.StatusOK,
		Steps: []evidence.Step{
			{Line: 7, Kind: evidence.StepCall, Tool: "edit", Text: "x.go"},
			{Line: 9, Kind: evidence.StepResult, Tool: "test", Text: "ok  	example	0.1s\nall tests passed"},
		},
	}
	r.Key.TaskID, r.Key.Arm, r.Key.RunIndex = task, arm, run
	r.Session.Verify = &session.VerifyResult{Passed: true}
	return Subject{
		Task: evidence.Task{
			ID:           task,
			Prompt:       "Make add add.\nKeep its signature.",
			Requirements: []evidence.Requirement{{ID: "r1", Text: "add returns the sum"}, {ID: "r2", Text: "tested"}},
		},
		Run:          r,
		Patch:        []byte(longFixture),
		VerifyOutput: "ok  \texample\t0.1s\n",
	}
}

func panel(names ...string) Panel {
	var p Panel
	for _, name := range names {
		p.Members = append(p.Members, Member{Name: name, Protocol: "chat", Model: "model-" + name, Family: name})
	}
	return p
}

func builtin(t testing.TB) Prompts {
	t.Helper()
	prompts, err := LoadPrompts("")
	if err != nil {
		t.Fatal(err)
	}
	return prompts
}

// verdictJSON is a reply with a verdict.
func verdictJSON(result string, evidence ...string) string {
	field := "result"
	if result == winnerX || result == winnerY || result == winnerTie {
		field = "winner"
	}
	quoted := make([]string, len(evidence))
	for i, item := range evidence {
		quoted[i] = fmt.Sprintf("%q", item)
	}
	return fmt.Sprintf("1. So.\n5. Decided.\n{%q: %q, \"confidence\": 0.9, \"critique\": \"fine\", "+
		"\"evidence\": [%s], \"claims\": []}", field, result, strings.Join(quoted, ", "))
}

// answered holds the replies of members that say what say says.
func answered(settings Settings, subjects []Subject, say func(q *question, m Member) string) *Replies {
	replies := &Replies{byKey: map[string]*storedReply{}}
	d := newDeriver(settings, subjects, replies.find)
	put := func(q *question) {
		for _, m := range settings.Panel.Members {
			for {
				_, missing := q.answer(m, replies.find)
				if missing == nil {
					break
				}
				cost := 0.01
				replies.add(&storedReply{
					Kind: lineReply, Key: missing.key(), Member: m.Name, Model: m.Model, Question: q.kind,
					Dimension: q.dimension, Reply: say(q, m), CostUSD: &cost, EndMs: 5,
				})
			}
		}
	}
	if settings.SelfTest {
		for q := range trialQuestions(d) {
			put(q)
		}
		d.selfTest()
	}
	for q := range singleQuestions(d) {
		put(q)
	}
	if d.settings.Pairwise != PairsOff {
		for q := range pairQuestions(d) {
			put(q)
		}
	}
	return replies
}

func cite(q *question) string {
	switch q.kind {
	case kindPair:
		return `X/verify "passed with exit code 0"`
	default:
		return `req:r1 "add returns the sum"`
	}
}
