package harness_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/session"
)

// step is one thing that a member does in a turn.
type step struct {
	kind string
	peer int           // whom it is about, by number
	wait time.Duration // how long it takes
}

// scenario is a random session: what each participant does in each turn, whatever it was asked.
type scenario struct {
	members []string // the facilitator first
	turns   [][][]step
	options harness.Options
}

var stepKinds = []string{
	"sleep", "sleep", "ask", "ask", "ask", "askAll", "askNobody", "askWithDeadline", "answer", "answer", "answer",
	"answerAll", "answerAll", "answerWithoutID", "answerWrong", "announce",
	"ask", "askAll", "announce", "answerAll", "conclude", "fail", "cannotRun", "hang", "deaf",
}

func drawScenario(rt *rapid.T) scenario {
	d := scenario{members: []string{"facilitator"}}
	for i := range rapid.IntRange(1, 4).Draw(rt, "participants") {
		d.members = append(d.members, fmt.Sprintf("p%d", i+1))
	}
	drawStep := rapid.Custom(func(rt *rapid.T) step {
		return step{
			kind: rapid.SampledFrom(stepKinds).Draw(rt, "kind"),
			peer: rapid.IntRange(0, len(d.members)-1).Draw(rt, "peer"),
			wait: time.Duration(rapid.IntRange(0, 3000).Draw(rt, "ms")) * time.Millisecond,
		}
	})
	for range d.members {
		d.turns = append(d.turns, rapid.SliceOfN(rapid.SliceOfN(drawStep, 0, 5), 2, 8).Draw(rt, "turns"))
	}
	d.options.Limits.Timeout = time.Hour
	d.options.Limits.Turns = rapid.SampledFrom([]int{0, 0, 5, 40}).Draw(rt, "turn limit")
	d.options.ParticipantLimits.Turns = rapid.SampledFrom([]int{0, 0, 3}).Draw(rt, "participant limit")
	d.options.MaxLeadTurns = rapid.SampledFrom([]int{0, 4}).Draw(rt, "lead limit")
	d.options.AskDeadline = rapid.SampledFrom([]time.Duration{0, 0, 2 * time.Second}).Draw(rt, "deadline")
	d.options.Errors.KeepGoing = rapid.Bool().Draw(rt, "keep going")
	d.options.Errors.Retries = rapid.SampledFrom([]int{-1, 1, 2}).Draw(rt, "retries")
	d.options.BatchWindow = rapid.SampledFrom([]time.Duration{-1, 0}).Draw(rt, "window")
	return d
}

// actor plays a member of a scenario.
type actor struct {
	scenario *scenario
	me       int
	cfg      harness.AgentConfig
	turn     *int // counts over restarts
	seen     *[]int
}

func (a *actor) Info() agent.Info { return agent.Info{ID: "actor"} }
func (a *actor) Probe(context.Context, agent.Host) (agent.Installation, error) {
	return agent.Installation{}, nil
}
func (a *actor) Dialects() []session.Dialect                                { return nil }
func (a *actor) Start(context.Context, agent.Config) (agent.Session, error) { return a, nil }
func (a *actor) ID() string                                                 { return "" }
func (a *actor) Close() error                                               { return nil }

var errStage = errors.New("fell off the stage")

func (a *actor) Prompt(ctx context.Context, text string) (agent.Result, error) {
	*a.seen = append(*a.seen, askIDs(text)...)
	number := *a.turn
	*a.turn++
	steps := []step{{kind: "answerAll"}}
	if turns := a.scenario.turns[a.me]; number < len(turns) {
		steps = turns[number]
	} else if a.me == 0 {
		steps = []step{{kind: "conclude"}, {kind: "conclude"}}
	}
	for _, s := range steps {
		switch s.kind {
		case "fail":
			return agent.Result{Outcome: session.OutcomeError, Err: errStage}, nil
		case "cannotRun":
			return agent.Result{}, errStage
		case "hang":
			<-ctx.Done()
			return agent.Result{Aborted: true}, nil
		case "deaf":
			time.Sleep(30 * time.Second)
		default:
			a.act(ctx, s)
		}
	}
	if ctx.Err() != nil {
		return agent.Result{Aborted: true}, nil
	}
	return agent.Result{Success: true, Outcome: session.OutcomeSuccess, Usage: session.TokenUsage{TotalTokens: 7}}, nil
}

func (a *actor) act(ctx context.Context, s step) {
	call := func(tool string, args map[string]any) {
		encoded, _ := json.Marshal(args)
		_, _ = a.cfg.Dispatcher.Call(ctx, a.cfg.Name, tool, encoded) // refusals are part of the play
	}
	time.Sleep(s.wait)
	switch s.kind {
	case "ask":
		call("Ask", map[string]any{"question": "q", "to": a.scenario.members[s.peer]})
	case "askAll":
		call("Ask", map[string]any{"question": "q"})
	case "askNobody":
		call("Ask", map[string]any{"question": "q", "to": "nobody"})
	case "askWithDeadline":
		call("Ask", map[string]any{"question": "q", "to": a.scenario.members[s.peer], "deadline": "PT1S"})
	case "answer":
		if n := len(*a.seen); n > 0 {
			call("Answer", map[string]any{"message": "a", "askId": (*a.seen)[s.peer%n]})
		}
	case "answerAll":
		for _, id := range *a.seen {
			call("Answer", map[string]any{"message": "a", "askId": id})
		}
	case "answerWithoutID":
		call("Answer", map[string]any{"message": "a"})
	case "answerWrong":
		call("Answer", map[string]any{"message": "a", "askId": s.peer + 1})
	case "announce":
		call("Announce", map[string]any{"message": "hear"})
	case "conclude":
		call("Conclude", map[string]any{"verdict": "success", "summary": "enough"})
	}
}

// stage runs a scenario and returns its trace.
func stage(t *testing.T, d scenario, home string) (string, harness.Result) {
	var out buffer
	var result harness.Result
	synctest.Test(t, func(t *testing.T) {
		turns, seen := make([]int, len(d.members)), make([][]int, len(d.members))
		query := func(cfg harness.AgentConfig) (agent.Agent, error) {
			me := slices.Index(d.members, cfg.Name)
			return &actor{scenario: &d, me: me, cfg: cfg, turn: &turns[me], seen: &seen[me]}, nil
		}
		d.options.HomeDir = home
		var configs []harness.AgentConfig
		for _, name := range d.members[1:] {
			configs = append(configs, harness.AgentConfig{Name: name})
		}
		f, err := harness.NewFacilitator(harness.FacilitatorConfig{
			FacilitatorCwd: home, AgentConfigs: configs,
			NewAgent: query, Output: &out, Options: d.options,
		})
		if err != nil {
			t.Fatal(err)
		}
		result, _ = f.Run(t.Context(), "play") // an actor that cannot run is reported, which is fine
		time.Sleep(5 * time.Minute)            // the deaf ones come off the stage
	})
	return out.String(), result
}

func TestWhateverHappensNothingIsLostAndTheSessionEnds(t *testing.T) {
	home := t.TempDir()
	runs := 0
	seen := map[string]int{}
	for range rounds() {
		rapid.Check(t, func(rt *rapid.T) {
			d := drawScenario(rt)
			text, result := stage(t, d, home)
			runs++
			all := lines(t, text)
			if err := checkTrace(all, d.members); err != nil {
				rt.Fatalf("%v\n%s", err, text)
			}
			for _, l := range all {
				seen[l.kind()]++
			}
			seen[result.Reason]++
			if result.Reason == "" || result.Verdict == "" {
				rt.Fatalf("the session ended without reason or verdict: %+v", result)
			}
		})
		if t.Failed() {
			break
		}
	}
	t.Logf("%d sessions: %v", runs, seen)
	for _, kind := range []string{
		"message", "delivery", "reminder", "protocol_violation", "cancel", "undelivered", "refusal", "conclusion",
		"runner_error", "agent_end", "limit", "lead_turn_limit", "quiescence",
		harness.ReasonConcluded, harness.ReasonQuiescent, harness.ReasonMaxTurns, harness.ReasonError,
		harness.ReasonTimeout,
	} {
		if seen[kind] == 0 && !t.Failed() && !testenv.Race {
			t.Errorf("no session showed %s: the dramas are too tame", kind)
		}
	}
}

// rounds makes hundreds of the hundred checks that rapid does by default, thousands in "make soak",
// and no more than that hundred under the race detector, which makes them ten times slower.
func rounds() int {
	switch {
	case testenv.Race:
		return 1
	case os.Getenv("FIT_SOAK") != "":
		return 30
	}
	return 6
}

// checkTrace checks what must hold of every trace.
func checkTrace(all []line, members []string) error {
	if len(all) == 0 || all[len(all)-1].kind() != "summary" {
		return errors.New("the summary is not the last line")
	}
	c := checker{
		members: members, asks: map[int64]*askLife{}, fate: map[delivery]int{}, last: map[[2]string]int64{},
		from: map[int64]string{}, gone: map[string]bool{},
	}
	for i, l := range all {
		if l.Seq != int64(i) {
			return fmt.Errorf("line %d has seq %d", i, l.Seq)
		}
		if l.Source != "orchestrator" {
			continue
		}
		if err := c.line(l); err != nil {
			return fmt.Errorf("line %d: %w", i, err)
		}
	}
	return c.end()
}

type delivery struct {
	to string
	id int64
}

type askLife struct {
	message             int64
	addressee           string
	delivered, reminded bool
	ends                int
}

type checker struct {
	members   []string
	asks      map[int64]*askLife
	fate      map[delivery]int // 0: on its way
	last      map[[2]string]int64
	from      map[int64]string
	gone      map[string]bool
	summaries int
}

func number(v any) int64 {
	f, _ := v.(float64)
	return int64(f)
}

func (c *checker) line(l line) error {
	e := l.Event
	switch l.kind() {
	case "message":
		return c.message(e)
	case "delivery":
		return c.delivery(e)
	case "undelivered":
		for _, id := range e["ids"].([]any) {
			if err := c.settle(delivery{e["to"].(string), number(id)}); err != nil {
				return err
			}
		}
	case "protocol_violation":
		if a := c.asks[number(e["askId"])]; !a.delivered || !a.reminded {
			return fmt.Errorf("violation of an ask that was delivered %v and reminded %v", a.delivered, a.reminded)
		}
	case "agent_end":
		c.gone[e["agent"].(string)] = true
	case "summary":
		c.summaries++
	}
	return nil
}

func (c *checker) message(e map[string]any) error {
	id, to, from := number(e["id"]), e["to"].(string), e["from"].(string)
	c.from[id] = from
	for _, name := range c.members {
		if name == to || to == "" && name != from && !c.gone[name] {
			c.fate[delivery{name, id}] = 0
		}
	}
	switch e["kind"] {
	case "ask":
		c.asks[number(e["askId"])] = &askLife{message: id, addressee: to}
	case "answer":
		a := c.asks[number(e["askId"])]
		if a == nil {
			return fmt.Errorf("an answer to an ask that never was: %v", e)
		}
		a.ends++
	}
	return nil
}

func (c *checker) settle(p delivery) error {
	n, known := c.fate[p]
	if !known && p.id != 0 || n != 0 {
		return fmt.Errorf("message %d for %s: known %v, settled %d times before", p.id, p.to, known, n)
	}
	c.fate[p] = 1
	return nil
}

func (c *checker) delivery(e map[string]any) error {
	to := e["to"].(string)
	if e["redelivery"] == true {
		return nil
	}
	for _, raw := range e["ids"].([]any) {
		id := number(raw)
		if err := c.settle(delivery{to, id}); err != nil {
			return err
		}
		key := [2]string{c.from[id], to}
		if c.last[key] > id {
			return fmt.Errorf("message %d from %s reached %s after %d", id, key[0], to, c.last[key])
		}
		c.last[key] = id
		for _, a := range c.asks {
			if a.message == id {
				a.delivered = true
			}
			a.reminded = a.reminded || a.delivered && a.addressee == to && c.from[id] == harness.OrchestratorName
		}
	}
	return nil
}

func (c *checker) end() error {
	var problems []string
	for id, a := range c.asks {
		if a.ends != 1 {
			problems = append(problems, fmt.Sprintf("ask %d ended %d times", id, a.ends))
		}
	}
	for p, n := range c.fate {
		if n != 1 {
			problems = append(problems, fmt.Sprintf("message %d for %s was lost", p.id, p.to))
		}
	}
	if c.summaries != 1 {
		problems = append(problems, fmt.Sprintf("%d summaries", c.summaries))
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}
