package scripted

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fit-eval/fit/internal/model/wire"
)

// talk is a client without a network: it holds a conversation with a script.
type talk struct {
	t      interface{ Fatalf(string, ...any) }
	script *Script
	at     cell
	conv   conversation
}

func newTalk(t *testing.T, script string) *talk {
	t.Helper()
	parsed, err := Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return &talk{
		t: t, script: parsed,
		conv: conversation{model: "m", tools: []offeredTool{{name: "Bash", kind: "function"}}},
	}
}

// say sends a prompt and returns the reply's text.
func (k *talk) say(prompt string) string {
	k.conv.prompt([]string{prompt})
	return k.next()
}

// give answers the reply's tool call.
func (k *talk) give(result string) string {
	k.conv.result(result)
	return k.next()
}

func (k *talk) next() string {
	p := k.script.pick(k.conv, k.at)
	if again := k.script.pick(k.conv, k.at); again.position != p.position {
		k.t.Fatalf("the same request was answered by turns %v and %v", p.position, again.position)
	}
	k.conv.reply(p.turn.Text, "")
	for i := range p.turn.Calls {
		k.conv.reply("", p.callID("toolu", i))
	}
	return p.turn.Text
}

func wantSaid(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("said %q, want %q", got, want)
	}
}

const branching = `{"turns": [
	{"label": "test", "text": "testing", "calls": [{"bash": "go test"}]},
	{"cases": [{"when": {"last_result": "re:^FAIL"}, "text": "repairing", "calls": [{"bash": "fix"}]}, {"when": {"last_result": "ok"}, "goto": "done"}], "text": "confused"},
	{"goto": "test"},
	{"label": "done", "text": "done"},
	{"text": "after: ${prompt}"}
]}`

func TestAScriptFollowsWhatToolsReturn(t *testing.T) {
	k := newTalk(t, branching)
	wantSaid(t, k.say("go"), "testing")
	wantSaid(t, k.give("x\nFAIL"), "repairing")
	wantSaid(t, k.give("fixed"), "testing")
	wantSaid(t, k.give("FAIL again"), "repairing")
	wantSaid(t, k.give("fixed"), "testing")
	wantSaid(t, k.give("ok"), "done")
	wantSaid(t, k.say("and now?"), "after: and now?")
	wantSaid(t, k.say("more?"), `[scripted model: scenario "main" ends after 5 turns]`)
	ids := map[string]bool{}
	for _, s := range k.conv.steps {
		if s.callID == "" {
			continue
		}
		if ids[s.callID] {
			t.Errorf("two calls have the id %s", s.callID)
		}
		ids[s.callID] = true
	}
}

func TestNoCaseFits(t *testing.T) {
	k := newTalk(t, `{"turns": [{"cases": [{"when": {"prompt": "never"}, "text": "x"}]}]}`)
	wantSaid(t, k.say("go"), "[scripted model: no case of turn 0 fits]")
	k = newTalk(t, `{"turns": [{"label": "a", "goto": "a"}]}`)
	wantSaid(t, k.say("go"), "[scripted model: turn 0 goes round in circles]")
}

func TestThePlaceIsFoundInAShortenedConversation(t *testing.T) {
	k := newTalk(t, branching)
	k.say("go")
	k.give("FAIL")
	k.give("fixed")
	// A client that compacts keeps the last exchange only.
	steps := k.conv.steps
	k.conv.steps = append([]step{{kind: stepPrompt, text: "summary of what happened"}}, steps[len(steps)-2:]...)
	wantSaid(t, k.give("ok"), "done")
}

func TestAReplySplitByTheClientIsOneReply(t *testing.T) {
	k := newTalk(t, `{"turns": [{"text": "two calls", "calls": [{"bash": "a"}, {"bash": "b"}]}, {"text": "end"}]}`)
	k.conv.prompt([]string{"go"})
	p := k.script.pick(k.conv, k.at)
	for i := range p.turn.Calls {
		k.conv.reply("", p.callID("toolu", i))
		k.conv.result("fine")
	}
	wantSaid(t, k.next(), "end")
}

func TestWordsOfTheClientAreNoReply(t *testing.T) {
	k := newTalk(t, branching)
	wantSaid(t, k.say("go"), "testing")
	k.conv.result("The tool use was rejected")
	k.conv.prompt([]string{"[Request interrupted by user]"})
	k.conv.reply("No response requested.", "")
	wantSaid(t, k.say("FAIL or not?"), "confused")
}

func TestScenariosKeepTheirOwnPlace(t *testing.T) {
	k := newTalk(t, `{
		"scenarios": [{"name": "review", "when": {"prompt": "review"}, "turns": [{"text": "r0"}, {"text": "r1"}]}],
		"turns": [{"text": "m0"}, {"text": "m1"}]}`)
	wantSaid(t, k.say("work"), "m0")
	wantSaid(t, k.say("please review"), "r0")
	wantSaid(t, k.say("work on"), "m1")
	wantSaid(t, k.say("review again"), "r1")
}

func TestConditions(t *testing.T) {
	k := newTalk(t, branching)
	k.conv.system = "You are a tester."
	k.conv.prompt([]string{"first"})
	k.conv.result("alpha")
	k.conv.result("beta")
	k.conv.prompt([]string{"<system-reminder>the date</system-reminder>", "last"})
	for want, conds := range map[bool][]Cond{
		true: {
			{},
			{Prompt: "last"},
			{FirstPrompt: "first"},
			{LastResult: "beta"},
			{AnyPrompt: "first"},
			{AnyResult: "alp"},
			{All: []Cond{{AnyPrompt: "first"}, {Prompt: "last"}}},
			{System: "tester"},
			{Model: "m"},
			{Tool: "Bash"},
			{Prompt: "re:^l.st$"},
			{Not: &Cond{Prompt: "first"}},
			{Any: []Cond{{Prompt: "x"}, {Prompt: "last"}}},
			{System: "the date"},
		},
		false: {
			{Prompt: "first"},
			{Prompt: "date"},
			{LastResult: "alpha"},
			{AnyPrompt: "alpha"},
			{AnyResult: "gamma"},
			{All: []Cond{{AnyPrompt: "first"}, {Prompt: "first"}}},
			{Tool: "Read"},
			{Prompt: "last", Model: "other"},
			{Any: []Cond{{Prompt: "x"}}},
			{Not: &Cond{}},
			{Prompt: "re:^ast"},
		},
	} {
		for _, cond := range conds {
			if got := cond.holds(k.conv); got != want {
				t.Errorf("%+v is %v", cond, got)
			}
		}
	}
}

func TestVariablesAndCaptures(t *testing.T) {
	k := newTalk(t, `{"vars": {"who": "bob"}, "captures": [{"var": "id", "from": "last_result", "regex": "id=(\\d+)"}],
		"turns": [{"text": "a", "calls": [{"bash": "x"}]}, {"text": "${who} ${id} ${HOME} ${last_result} ${key} ${seed}", "calls": [{"tool": "T", "input": {"q": "${last_result}"}}]}]}`)
	k.at = cell{key: "k", seed: "7"}
	k.say("go")
	k.conv.result("say \"hi\", id=42")
	p := k.script.pick(k.conv, k.at)
	wantSaid(t, p.turn.Text, `bob 42 ${HOME} say "hi", id=42 k 7`)
	wantSaid(t, string(p.turn.Calls[0].Input), `{"q": "say \"hi\", id=42"}`)
}

// What answers requests without tools may have cases too, as judges need who are asked in turn.
func TestAuxiliaryRequestsHaveCases(t *testing.T) {
	k := newTalk(t, `{"aux": {"cases": [{"when": {"prompt": "verdict"}, "text": "Pass"}], "text": "a title"},
		"turns": [{"text": "work"}]}`)
	k.conv.tools = nil
	wantSaid(t, k.say("your verdict?"), "Pass")
	wantSaid(t, k.say("name it"), "a title")
}

func TestAuxAnswersRequestsWithoutTools(t *testing.T) {
	k := newTalk(t, `{"aux": {"text": "a title"}, "turns": [{"text": "work"}]}`)
	wantSaid(t, k.say("go"), "work")
	k.conv = conversation{}
	wantSaid(t, k.say("Write a title"), "a title")
}

func TestChanceIsRepeatableAndFollowsTheWeights(t *testing.T) {
	k := newTalk(t, `{"turns": [{"choices": [{"weight": 3, "text": "good"}, {"text": "bad"}]}]}`)
	k.conv.prompt([]string{"go"})
	good := 0
	const cells = 4000
	for i := range cells {
		at := cell{key: "task/arm", seed: fmt.Sprint(i)}
		said := k.script.pick(k.conv, at).turn.Text
		if said != k.script.pick(k.conv, at).turn.Text {
			t.Fatal("the same cell was answered differently")
		}
		if said == "good" {
			good++
		}
	}
	// 3 in 4, give or take five standard deviations
	if share := float64(good) / cells; share < 0.715 || share > 0.785 {
		t.Errorf("%.3f of the cells were good, want 0.75", share)
	}
}

// However a conversation goes, the reply to it depends on nothing but itself: replaying any prefix
// finds the turn that was answered then.
func TestReplayingAConversationFindsEveryTurnAgain(t *testing.T) {
	script, err := Parse([]byte(`{"turns": [
		{"label": "a", "text": "a", "calls": [{"bash": "x"}]},
		{"choices": [{"text": "b"}, {"goto": "a"}, {"goto": "d", "weight": 0.5}]},
		{"cases": [{"when": {"prompt": "odd"}, "goto": "a"}], "text": "c"},
		{"label": "d", "text": "d"},
		{"goto": "a"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		k := &talk{
			t: t, script: script, at: cell{seed: rapid.StringN(0, 4, -1).Draw(t, "seed")},
			conv: conversation{tools: []offeredTool{{name: "Bash"}}},
		}
		type answered struct {
			steps int
			at    position
		}
		var history []answered
		k.conv.prompt([]string{"start"})
		for range rapid.IntRange(1, 12).Draw(t, "turns") {
			p := script.pick(k.conv, k.at)
			history = append(history, answered{len(k.conv.steps), p.position})
			k.next()
			if len(p.turn.Calls) > 0 {
				k.conv.result(rapid.SampledFrom([]string{"ok", "FAIL"}).Draw(t, "result"))
			} else {
				k.conv.prompt([]string{rapid.SampledFrom([]string{"odd", "even"}).Draw(t, "prompt")})
			}
		}
		for _, h := range history {
			if got := script.pick(k.conv.before(h.steps), k.at).position; got != h.at {
				t.Fatalf("after %d steps: turn %v, then it was %v", h.steps, got, h.at)
			}
		}
	})
}

func TestMistakesInAScriptAreFoundWithTheirPlace(t *testing.T) {
	for script, want := range map[string]string{
		`{`:                                     "line 1: the document ends too early",
		`{}`:                                    `the script has neither "turns" nor "scenarios"`,
		"{\"turns\": [\n{\"txet\": \"x\"}]}":    `line 2: there is no field "txet"`,
		"{\"turns\": [\n\n{\"text\": 5}]}":      "line 3: turns.text: want a string, got number",
		"{\"turns\": [{\"text\": \"a\"},\n{}]}": "line 2: turns[1]: the turn says nothing",
		"{\"turns\": [{\"calls\": [\n{\"bash\": \"x\"},\n{\"bash\": \"x\", \"read\": \"y\"}]}]}":  "line 3: turns[0].calls[1]: a call has one of",
		"{\"turns\": [{\"goto\":\n\"nowhere\"}]}":                                                 `line 2: turns[0].goto: no turn has the label "nowhere"`,
		`{"turns": [{"calls": [{"bash": "x", "content": "y"}]}]}`:                                 `"content" does not go with "bash"`,
		`{"turns": [{"calls": [{"edit": "x", "new": "y"}]}]}`:                                     `an edit needs "old"`,
		`{"turns": [{"calls": [{"mcp": "ask"}]}]}`:                                                "want server/tool",
		`{"turns": [{"fault": {}}]}`:                                                              `a fault needs a "status" or a "stream"`,
		`{"turns": [{"fault": {"status": 200}}]}`:                                                 "want an error status from 400 to 599, got 200",
		`{"turns": [{"fault": {"stream": "explode"}}]}`:                                           "want cut, end, error, hang or drop",
		`{"turns": [{"cases": [{"text": "x"}]}]}`:                                                 `a case needs a "when"`,
		`{"turns": [{"cases": [{"when": {"prompt": "re:("}, "text": "x"}]}]}`:                     "turns[0].cases[0].when.prompt: error parsing regexp",
		`{"turns": [{"choices": [{"text": "x", "weight": -1}]}]}`:                                 "a weight is negative",
		`{"turns": [{"label": "a", "text": "x"}, {"label": "a", "text": "x"}]}`:                   `turns[1]: label "a" is taken`,
		`{"scenarios": [{"name": "a", "turns": []}]}`:                                             "scenarios[0].turns: there are no turns",
		`{"scenarios": [{"turns": [{"text": "x"}]}]}`:                                             "a scenario needs a name of its own",
		`{"turns": [{"text": "x"}], "captures": [{"var": "v", "from": "nowhere", "regex": "x"}]}`: "captures[0].from: want prompt",
		`{"turns": [{"text": "x"}]} {"turns": []}`:                                                "something after the end of the document",
		`{"turns": [{"text": "x"}], "end": {"goto": "a"}}`:                                        `end.goto: no turn has the label "a"`,
	} {
		t.Run(script, func(t *testing.T) {
			_, err := Parse([]byte(script))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s:\n got %v\nwant %s", script, err, want)
			}
		})
	}
}

func TestTheExampleInTheDocumentationIsAScript(t *testing.T) {
	k := newTalk(t, `{"turns": [
	  {"thinking": "Look first.", "text": "I'll read the file.", "calls": [{"read": "calc.go"}]},
	  {"calls": [{"edit": "calc.go", "old": "return a - b", "new": "return a + b"}]},
	  {"label": "test", "calls": [{"bash": "go test ./..."}]},
	  {"cases": [
	    {"when": {"last_result": "FAIL"}, "text": "Not yet.", "calls": [{"bash": "git diff"}]},
	    {"when": {"last_result": "re:^ok\\s"}, "goto": "done"}],
	   "text": "I cannot tell."},
	  {"goto": "test"},
	  {"label": "done", "text": "Add adds now, and the tests pass.", "usage": {"input": 1200, "output": 80, "cache_read": 900}}
	]}`)
	k.say("Fix Add")
	k.give("func Add")
	k.give("edited")
	wantSaid(t, k.give("--- FAIL"), "Not yet.")
	wantSaid(t, k.give("diff"), "")
	wantSaid(t, k.give("ok  \tcalc"), "Add adds now, and the tests pass.")
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(branching))
	f.Add([]byte(`{"scenarios": [{"name": "a", "when": {"not": {"any": [{"prompt": "re:x"}]}}, "turns": [{"choices": [{"weight": 2, "text": "x"}]}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		script, err := Parse(data)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		k := &talk{t: t, script: script, conv: conversation{tools: clients["claude"].tools}}
		k.conv.prompt([]string{"go"})
		for range 4 {
			p := script.pick(k.conv, k.at)
			_, events := renderAnthropic(newReply(p, k.conv, script))
			_ = events()
			k.next()
			k.conv.result("ok")
		}
	})
}

func FuzzRequests(f *testing.F) {
	f.Add([]byte(`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_main_00_t0v0c0"}]}],"tools":[{"name":"Bash"}]}`))
	f.Add([]byte(`{"input":[{"type":"additional_tools","tools":[{"type":"namespace","name":"n","tools":[{"type":"custom","name":"exec"}]}]},{"role":"user","content":"x"}]}`))
	script, err := Parse([]byte(branching))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, p := range protocols {
			conv, err := p.read(body, wire.Route{})
			if err != nil {
				continue
			}
			whole, events := p.render(newReply(script.pick(conv, cell{}), conv, script))
			if whole == nil || len(events()) == 0 {
				t.Error("no reply")
			}
		}
	})
}
