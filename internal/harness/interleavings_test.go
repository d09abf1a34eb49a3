package harness

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/trace"
)

// A script says which tool calls a member makes next: what it does depends on what it knows, and
// not on when it learned it.
type script func(view) []toolCall

// view is what a member knows: everything it has been told, the calls it has made, and how many of
// them in this turn.
type view struct {
	seen, done []string
	inTurn     int
}

type toolCall struct{ tool, args string }

func (c toolCall) String() string { return c.tool + " " + c.args }

// director holds a session step by step: which queue is delivered next, and which turn goes on or
// ends next, is for the test to choose.
type director struct {
	t       *testing.T
	loop    *loop
	scripts map[string]script
	actors  map[string]*actorState
}

type actorState struct {
	view
	runner *runner
	active bool // in a turn
}

func newDirector(t *testing.T, scripts map[string]script) *director {
	t.Helper()
	cfg := sessionConfig{
		mode:     ModeFacilitate,
		lead:     AgentConfig{Name: "facilitator", Cwd: "/"},
		newAgent: func(AgentConfig) (agent.Agent, error) { return nil, io.ErrUnexpectedEOF },
		output:   io.Discard,
		redactor: &redact.Redactor{},
		options:  Options{BatchWindow: -1, HomeDir: "/nowhere"},
	}
	d := &director{t: t, scripts: scripts, actors: map[string]*actorState{}}
	for name := range scripts {
		if name != "facilitator" {
			cfg.participants = append(cfg.participants, AgentConfig{Name: name})
		}
	}
	slices.SortFunc(cfg.participants, func(a, b AgentConfig) int { return strings.Compare(a.Name, b.Name) })
	l, err := cfg.loop()
	if err != nil {
		t.Fatal(err)
	}
	d.loop = l
	for _, r := range l.runners {
		d.actors[r.member.name] = &actorState{runner: r}
	}
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	l.hub.commit(startedEvent{
		Type: trace.TypeSessionStart, Lead: "facilitator", Settings: l.hub.state.settings,
		Task: "task",
	})
	return d
}

// choices are the members for whom something can happen next, in a fixed order.
func (d *director) choices() []string {
	if d.loop.hub.stopped {
		return nil
	}
	var names []string
	for _, m := range d.loop.hub.state.order {
		if a := d.actors[m.name]; a.active || len(m.queue) > 0 && m.gone == "" {
			names = append(names, m.name)
		}
	}
	return names
}

// step delivers a member's queue, or makes its next call, or ends its turn.
func (d *director) step(name string) {
	d.t.Helper()
	a := d.actors[name]
	if !a.active {
		ctx, prompt := a.runner.next()
		if ctx == nil {
			d.t.Fatalf("%s has no turn to take", name)
		}
		a.seen = append(a.seen, strings.Split(prompt, "\n")...)
		a.active, a.inTurn = true, 0
		return
	}
	if calls := d.scripts[name](a.view); len(calls) > 0 {
		call := calls[0]
		a.done = append(a.done, call.String())
		a.inTurn++
		result, err := d.loop.dispatcher.Call(d.t.Context(), name, call.tool, []byte(call.args))
		if err != nil || result.IsError {
			d.t.Fatalf("%s: %s: %+v, %v", name, call, result, err)
		}
		return
	}
	a.active = false
	a.runner.end(outcome{kind: roundDone}, 1)
}

// key identifies the situation: two paths that lead to it have the same futures.
func (d *director) key() string {
	var b strings.Builder
	for _, m := range d.loop.hub.state.order {
		a := d.actors[m.name]
		fmt.Fprintf(&b, "%s %v %+v |", m.name, a.active, a.view)
		for _, message := range m.queue {
			fmt.Fprintf(&b, " %s", inboxText([]*Message{message}))
		}
		for _, ask := range m.owed {
			fmt.Fprintf(&b, " owes %d %v %v %v", ask.id, ask.delivered, ask.reminded, ask.reminderSeen)
		}
		fmt.Fprintf(&b, " asking %d\n", m.asking)
	}
	return b.String()
}

// outcome is what came of the session: the verdict, and the answer to every question; and who was
// reminded, if that matters.
func (d *director) outcome(reminders bool) string {
	s := d.loop.hub.state
	if s.conclusion == nil {
		return "no conclusion: " + d.loop.reason
	}
	var answers []string
	for name, a := range d.actors {
		for _, line := range a.seen {
			if reminders && strings.HasPrefix(line, "[system]") {
				answers = append(answers, name+" was reminded")
			}
			if _, text, ok := strings.Cut(line, "] "); ok && strings.HasPrefix(line, "[answer#") {
				answers = append(answers, text)
			}
		}
	}
	slices.Sort(answers)
	return s.conclusion.Verdict + "\n" + strings.Join(answers, "\n")
}

// everyOrder holds the session in every order in which its steps can happen and returns the
// outcomes, with one order that leads to each.
func everyOrder(
	t *testing.T,
	scripts map[string]script,
	reminders bool,
) (outcomes map[string][]string, situations int) {
	t.Helper()
	outcomes = map[string][]string{}
	seen := map[string]bool{}
	pending := [][]string{nil}
	for len(pending) > 0 {
		path := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		d := newDirector(t, scripts)
		for _, name := range path {
			d.step(name)
		}
		key := d.key()
		if seen[key] {
			continue
		}
		seen[key] = true
		choices := d.choices()
		if len(choices) == 0 {
			if out := d.outcome(reminders); outcomes[out] == nil {
				outcomes[out] = path
			}
		}
		for _, name := range choices {
			pending = append(pending, append(slices.Clone(path), name))
		}
		if len(path) > 200 || len(seen) > 20_000 {
			t.Fatalf("the session does not end: %v", path)
		}
	}
	return outcomes, len(seen)
}

func askCall(to, question string) toolCall {
	return toolCall{"Ask", fmt.Sprintf(`{"to":%q,"question":%q}`, to, question)}
}

// answers are the calls that answer the asks of somebody, or of anybody.
func (v view) answers(from string) []toolCall {
	var calls []toolCall
	for _, line := range v.seen {
		var id int
		if n, _ := fmt.Sscanf(line, "[ask#%d]", &id); n == 1 && strings.Contains(line, "] "+from) {
			_, question, _ := strings.Cut(line, ": ")
			calls = append(calls, toolCall{"Answer", fmt.Sprintf(`{"askId":%d,"message":"%s done"}`, id, question)})
		}
	}
	return v.once(calls...)
}

// once leaves out the calls that were made before.
func (v view) once(calls ...toolCall) []toolCall {
	return slices.DeleteFunc(calls, func(c toolCall) bool { return slices.Contains(v.done, c.String()) })
}

// count is how many lines have been seen that begin so.
func (v view) count(prefix string) int {
	n := 0
	for _, line := range v.seen {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

// asksThenConcludes leads: it asks the named members, answers what they ask, and concludes when all
// have answered, whatever they say.
func asksThenConcludes(names ...string) script {
	return func(v view) []toolCall {
		var calls []toolCall
		for _, name := range names {
			to, _, _ := strings.Cut(name, " ")
			calls = append(calls, askCall(to, "part of "+name))
		}
		calls = append(v.once(calls...), v.answers("")...)
		if len(calls) == 0 && v.count("[answer#") == len(names) {
			return v.once(toolCall{"Conclude", `{"verdict":"success","summary":"all answered"}`})
		}
		return calls
	}
}

// consults asks a peer something, one question after the other, before it answers its lead, and
// answers the peer's own questions at once.
func consults(peer string, questions ...string) script {
	return func(v view) []toolCall {
		calls := v.answers(peer)
		answered := v.count("[answer#")
		switch {
		case len(v.answers("facilitator")) == 0:
		case answered < len(questions):
			calls = append(calls, v.once(askCall(peer, questions[answered]))...)
		default:
			calls = append(calls, v.answers("facilitator")...)
		}
		return calls
	}
}

func helps(v view) []toolCall { return v.answers("") }

func answersOneInATurn(v view) []toolCall {
	if v.inTurn > 0 {
		return nil
	}
	calls := v.answers("")
	return calls[:min(len(calls), 1)]
}

func neverAnswers(view) []toolCall { return nil }

func consultsLead(v view) []toolCall {
	calls := v.once(toolCall{"Ask", `{"question":"what exactly?"}`})
	if v.count("[answer#") > 0 {
		calls = append(calls, v.answers("")...)
	}
	return calls
}

func TestTheOutcomeDoesNotDependOnTiming(t *testing.T) {
	for name, test := range map[string]struct {
		scripts   map[string]script
		want      []string
		reminders bool // are part of what is compared
		large     bool // has too many orders for the race detector
	}{
		"a participant consults a peer twice": {
			map[string]script{
				"facilitator": asksThenConcludes("alice", "bob"), "alice": consults("bob", "who", "when"),
				"bob": helps,
			},
			[]string{
				"success", "alice: part of alice done", "bob: part of bob done",
				"bob: when done", "bob: who done",
			},
			true, true,
		},
		"two consult each other": {
			map[string]script{
				"facilitator": asksThenConcludes("alice", "bob"), "alice": consults("bob", "who"),
				"bob": consults("alice", "when"),
			},
			[]string{
				"success", "alice: part of alice done", "alice: when done", "bob: part of bob done",
				"bob: who done",
			},
			true, true,
		},
		"a participant consults its lead": {
			map[string]script{"facilitator": asksThenConcludes("alice"), "alice": consultsLead},
			[]string{"success", "alice: part of alice done", "facilitator: what exactly? done"},
			true, false,
		},
		"a participant answers one ask in a turn": {
			map[string]script{
				"facilitator": asksThenConcludes("alice", "bob"), "alice": consults("bob", "who"),
				"bob": answersOneInATurn,
			},
			[]string{"success", "alice: part of alice done", "bob: part of bob done", "bob: who done"},
			false, false,
		},
		"a participant answers three asks one by one": {
			map[string]script{
				"facilitator": asksThenConcludes("bob", "bob again", "bob for the last time"),
				"bob":         answersOneInATurn,
			},
			[]string{
				"success", "bob: part of bob again done", "bob: part of bob done",
				"bob: part of bob for the last time done",
			},
			false, false,
		},
		"a participant never answers": {
			map[string]script{
				"facilitator": asksThenConcludes("alice", "bob"), "alice": consults("bob", "who"),
				"bob": neverAnswers,
			},
			[]string{
				"success", "@orchestrator: [no answer: bob did not answer, even after a reminder]",
				"@orchestrator: [no answer: bob did not answer, even after a reminder]", "alice: part of alice done",
			},
			false, false,
		},
	} {
		if test.large && testenv.Race {
			continue
		}
		t.Run(name, func(t *testing.T) {
			outcomes, situations := everyOrder(t, test.scripts, test.reminders)
			t.Logf("%d situations", situations)
			for outcome, path := range outcomes {
				if want := strings.Join(test.want, "\n"); outcome != want {
					t.Errorf("the order %s leads to\n%s\nwant\n%s", strings.Join(path, " "), outcome, want)
				}
			}
		})
	}
}
