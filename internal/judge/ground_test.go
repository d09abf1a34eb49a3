package judge

import (
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/session"
)

func TestCitations(t *testing.T) {
	short := subject("t", "a", 0)
	short.Patch = []byte(fixture)
	long := subject("t", "a", 0)
	quoting := subject("t", "a", 0)
	quoting.Patch = []byte("--- a/x.go\n+++ b/x.go\n@@ -0,0 +1,1 @@\n+say(\"done\")\n")
	for _, test := range []struct {
		name  string
		of    *Subject
		item  string
		holds bool
	}{
		// the example of the specification; a quote of a short line must be the whole line
		{"an added line", &short, `x.go:12 "new2"`, true},
		{"a context line", &short, `x.go:10 "ctx"`, false},
		{"a range that hits", &short, `x.go:9-11 "new1"`, true},
		{"a range over two lines", &short, `x.go:11-12 "new1 new2"`, true},
		{"another file", &short, `y.go:1 "new1"`, false},
		{"a removed line", &short, `x.go:-11 "old"`, true},
		{"a removed line cited as an added one", &short, `x.go:11 "old"`, false},
		{"an added line cited as a removed one", &short, `x.go:-12 "new2"`, false},
		{"a part of a short line", &short, `x.go:12 "new"`, false},
		{"no quote", &short, `x.go:12`, false},
		{"an empty quote", &short, `x.go:12 ""`, false},

		{"eight characters", &long, `x.go:12 "return s"`, true},
		{"seven characters", &long, `x.go:12 "return "`, false},
		{"blanks collapsed", &long, `x.go:11 "sum :=  a + b"`, true},
		{"the wrong line", &long, `x.go:11 "return sum // done"`, false},
		{"a wrong quote", &long, `x.go:12 "return total // done"`, false},
		{"a deleted file", &long, `gone.go:-2 "removedThing = 1"`, true},
		{"a requirement", &long, `req:r1 "add returns the sum"`, true},
		{"a requirement that is not there", &long, `req:r9 "add returns the sum"`, false},
		{"the prompt", &long, `req:task "Keep its signature."`, true},
		{"verify", &long, `verify "passed with exit code 0"`, true},
		{"verify's output", &long, `verify "ok example 0.1s"`, true},
		{"the trace", &long, `trace:9 "all tests passed"`, true},
		{"another line of the trace", &long, `trace:8 "all tests passed"`, false},
		{"a huge number", &long, `x.go:99999999999999999999 "return sum // done"`, false},
		{"a signed number", &long, `x.go:+12 "return sum // done"`, false},
		{"a range that is turned round", &long, `x.go:14-11 "return sum // done"`, false},
		{"escaped quotes", &quoting, `x.go:1 "say(\"done\")"`, true},
		{"quotes", &quoting, `x.go:1 "say("done")"`, true},
		{"words after the quote", &long, `x.go:12 "return sum // done" is wrong`, false},
		{"a side in a single question", &long, `X/x.go:12 "return sum // done"`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := newView(test.of)
			all := shown{v.task(""), v.patch(""), v.verify(""), v.trace("")}
			if got := all.holds(test.item); got != test.holds {
				t.Errorf("%s holds: %v, want %v", test.item, got, test.holds)
			}
		})
	}
}

func TestCitationsOfPairs(t *testing.T) {
	x, y := subject("t", "a", 0), subject("t", "b", 0)
	y.Patch = []byte(fixture)
	q := pair(newFrames(builtin(t)), evidence.Correctness, newView(&x), newView(&y))
	for item, holds := range map[string]bool{
		`X/x.go:12 "return sum // done"`:     true,
		`Y/x.go:12 "return sum // done"`:     false,
		`Y/x.go:12 "new2"`:                   true,
		`x.go:12 "return sum // done"`:       false,
		`Y/verify "passed with exit code 0"`: true,
		`verify "passed with exit code 0"`:   false,
		`req:r1 "add returns the sum"`:       true,
		`X/req:r1 "add returns the sum"`:     true,
		`Y/req:r2 "tested"`:                  true,
		`Y/req:r3 "tested"`:                  false,
		`Z/req:r2 "tested"`:                  false,
	} {
		t.Run(item, func(t *testing.T) {
			if q.shown.holds(item) != holds {
				t.Errorf("%s holds: %v, want %v", item, !holds, holds)
			}
		})
	}
}

// TestWhatWasNotShownCannotBeCited: verification is judged by the trace, so that the patch proves
// nothing there.
func TestWhatWasNotShownCannotBeCited(t *testing.T) {
	s := subject("t", "a", 0)
	q := newView(&s).single(newFrames(builtin(t)), kindSingle, evidence.Verification)
	if q.shown.holds(`x.go:12 "return sum // done"`) {
		t.Error("a line of the patch was cited by a judge that saw only the trace")
	}
	if !q.shown.holds(`trace:9 "all tests passed"`) {
		t.Error("the trace cannot be cited")
	}
}

func TestGrounding(t *testing.T) {
	failing := `x.go:12 "return sum // done"`
	reply := `{"result":"Fail","confidence":1,"evidence":["x.go:12 \"return sum // done\""],` +
		`"claims":[{"type":"tests_fail","cite":"x.go:12 \"return sum // done\""}]}`
	for _, test := range []struct {
		name      string
		change    func(*Subject)
		reply     string
		result    string
		dropped   int
		abstained bool
	}{
		{name: "pass with a citation", reply: verdictJSON(Pass, failing), result: Pass},
		{name: "fail with a citation", reply: verdictJSON(Fail, failing), result: Fail},
		{
			name: "one of three holds", reply: verdictJSON(Fail, "x.go:12", `x.go:1 "return sum"`, failing),
			result: Fail, dropped: 2,
		},
		{name: "pass without a citation", reply: verdictJSON(Pass), abstained: true},
		{name: "fail without a citation", reply: verdictJSON(Fail), abstained: true},
		{name: "a missing line", reply: verdictJSON(Fail, `x.go:40 "return sum // done"`), abstained: true, dropped: 1},
		{
			name: "a context line", reply: verdictJSON(Fail, `x.go:10 "func add(a, b int) int {"`), abstained: true,
			dropped: 1,
		},
		{name: "a wrong quote", reply: verdictJSON(Fail, `x.go:12 "return a - b"`), abstained: true, dropped: 1},
		{name: "tests fail, but verify passed", reply: reply, abstained: true, dropped: 1},
		{
			name: "tests fail, and tests were tampered with", reply: reply, result: Fail,
			change: func(s *Subject) {
				s.Run.Session.Integrity = []session.IntegrityFlag{{Kind: evidence.FlagTestSkipped}}
			},
		},
		{
			name: "tests fail, and so does verify", reply: reply, result: Fail,
			change: func(s *Subject) { s.Run.Session.Verify = &session.VerifyResult{ExitCode: 1} },
		},
		{
			name: "tests fail, and nothing was verified", reply: reply, result: Fail,
			change: func(s *Subject) { s.Run.Session.Verify = nil },
		},
		{
			name:  "tests fail beside something else",
			reply: strings.Replace(reply, `"evidence":[`, `"evidence":["req:r2 \"tested\"",`, 1), result: Fail,
			dropped: 1,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := subject("t", "a", 0)
			if test.change != nil {
				test.change(&s)
			}
			q := newView(&s).single(newFrames(builtin(t)), kindSingle, evidence.Correctness)
			opinion, err := parseReply(test.reply, false)
			if err != nil {
				t.Fatal(err)
			}
			a := ground(opinion, q.shown, q.refuted)
			if a.abstained != test.abstained || a.dropped != test.dropped || !a.abstained && a.result != test.result {
				t.Errorf("%q, abstained %v, dropped %d; want %q, %v, %d", a.result, a.abstained, a.dropped, test.result,
					test.abstained, test.dropped)
			}
		})
	}
}

func TestReplies(t *testing.T) {
	good := `{"result":"Pass","confidence":0.5,"critique":"c","evidence":["verify \"ok\""]}`
	for _, test := range []struct {
		name, text string
		pair       bool
		want       string // the result, or a part of the error after "!"
	}{
		{"only the object", good, false, Pass},
		{"after prose with braces", "1. {x} and } and {\n2. done\n" + good, false, Pass},
		{"in a fence", "```json\n" + good + "\n```\n", false, Pass},
		{"two that agree", good + "\n" + good, false, Pass},
		{"two that contradict", strings.Replace(good, "Pass", "Fail", 1) + "\n" + good, false, "!two JSON objects"},
		{"another object before it", `{"a": {"result": 1}} ` + good, false, Pass},
		{"braces in its texts", strings.Replace(good, `"c"`, `"if x { y } }"`, 1), false, Pass},
		{"more fields", strings.Replace(good, `"critique"`, `"why":{"a":[1]},"critique"`, 1), false, Pass},
		{"a pair", strings.Replace(good, `"result":"Pass"`, `"winner":"tie"`, 1), true, winnerTie},
		{"nothing", "", false, "!empty"},
		{"prose", "The work is fine.", false, "!does not end with a JSON object"},
		{"prose after the object", good + "\nI hope this helps.", false, "!does not end with a JSON object"},
		{"a broken object", `{"result":"Pass",}`, false, "!not with a valid JSON object"},
		{"two verdicts in one", strings.Replace(good, `{`, `{"result":"Fail",`, 1), false, "!two members"},
		{"another word", strings.Replace(good, "Pass", "pass", 1), false, `!"result" is "pass"`},
		{"another field", strings.Replace(good, "result", "Result", 1), false, `!no "result"`},
		{"the wrong kind", good, true, `!no "winner"`},
		{"no confidence", `{"result":"Pass","evidence":[]}`, false, `!no "confidence"`},
		{"too much confidence", strings.Replace(good, "0.5", "80", 1), false, `!from 0 to 1`},
		{"evidence that is no list", `{"result":"Pass","confidence":1,"evidence":"verify"}`, false, `!"evidence"`},
		{"a list", "[" + good + "]", false, "!does not end with a JSON object"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o, err := parseReply(test.text, test.pair)
			want, wrong := strings.CutPrefix(test.want, "!")
			if !wrong && (err != nil || o.result != want) ||
				wrong && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%q, error %v; want %s", o.result, err, test.want)
			}
		})
	}
}

func FuzzReplies(f *testing.F) {
	f.Add(verdictJSON(Pass, `x.go:12 "return sum // done"`))
	f.Add(verdictJSON(winnerTie, `X/verify "passed with"`))
	f.Add(strings.Repeat(`{"a":`, 50) + "}}")
	s := subject("t", "a", 0)
	prompts := newFrames(builtin(f))
	single := newView(&s).single(prompts, kindSingle, evidence.Correctness)
	both := pair(prompts, evidence.Correctness, newView(&s), newView(&s))
	f.Fuzz(func(t *testing.T, text string) {
		for _, q := range []*question{single, both} {
			opinion, err := parseReply(text, q.kind == kindPair)
			if err != nil {
				continue
			}
			a := ground(opinion, q.shown, q.refuted)
			if a.abstained != (len(a.held) == 0) {
				t.Errorf("abstained %v with %d citations that hold", a.abstained, len(a.held))
			}
			if len(a.held)+a.dropped > len(opinion.evidence)+len(opinion.claims) {
				t.Errorf("%d held and %d dropped of %d", len(a.held), a.dropped, len(opinion.evidence))
			}
		}
	})
}

func FuzzCitations(f *testing.F) {
	f.Add(`x.go:12 "return sum // done"`, longFixture)
	f.Add(`x.go:9-11 "new1"`, fixture)
	f.Add(`req:r1 "add returns the sum"`, "")
	f.Fuzz(func(t *testing.T, item, patch string) {
		s := subject("t", "a", 0)
		s.Patch = []byte(patch)
		v := newView(&s)
		all := shown{v.task(""), v.patch(""), v.verify(""), v.trace("")}
		if !all.holds(item) {
			return
		}
		_, quote, ok := parseItem(item)
		if !ok || quote == "" || !strings.Contains(collapse(withoutMargins(string(fence(all)))), quote) {
			t.Errorf("%q holds, but the quote was not shown", item)
		}
	})
}

// withoutMargins leaves the texts of what was shown.
func withoutMargins(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if _, after, ok := strings.Cut(line, " | "); ok {
			out.WriteString(after)
		}
	}
	return out.String()
}

// A text that is collapsed already is returned as it is, and every other one as strings.Fields has
// it.
func FuzzCollapse(f *testing.F) {
	for _, text := range []string{"", " ", "a b", " a", "a ", "a  b", "a\tb", "ä b", "a\u00a0b", "a\nb \n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := collapse(text), strings.Join(strings.Fields(text), " "); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	})
}
