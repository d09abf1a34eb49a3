package scripted

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// cell is the part of an address that makes chance repeatable.
type cell struct {
	script string
	key    string
	seed   string
}

// position says which turn answered: the scenario, the turn's index in it, and how often that turn
// had answered before in this conversation.
type position struct {
	scenario string
	index    int
	visit    int
}

// pick is the script's answer to one request.
type pick struct {
	position
	turn Turn
	// conversation distinguishes conversations of the same scenario; it is part of tool-call ids.
	conversation string
}

// progress is the state of one conversation in one scenario.
type progress struct {
	next   int
	visits map[int]int
	last   position
	hasAny bool
}

// pick chooses the turn that answers a conversation, by replaying the script along it.
func (s *Script) pick(c conversation, at cell) pick {
	if s.Aux != nil && len(c.tools) == 0 {
		aux := &Scenario{Name: "aux", Turns: []Turn{*s.Aux}}
		_, turn := aux.resolve(0, c, map[int]int{}, at)
		return pick{position: position{scenario: aux.Name}, turn: s.expand(turn, c, at)}
	}
	done := map[string]*progress{}
	state := func(sc *Scenario) *progress {
		if done[sc.Name] == nil {
			done[sc.Name] = &progress{visits: map[int]int{}}
		}
		return done[sc.Name]
	}
	for _, span := range c.replies() {
		before := c.before(span.start)
		sc := s.scenario(before)
		if sc == nil {
			continue
		}
		state(sc).replay(sc, before, span.callIDs, at)
	}
	sc := s.scenario(c)
	if sc == nil {
		return pick{
			position: position{scenario: "none"},
			turn:     Turn{Text: "[scripted model: no scenario fits this request]"},
		}
	}
	p := state(sc)
	index, turn := sc.resolve(p.next, c, p.visits, at)
	answer := pick{position: position{sc.Name, index, p.visits[index]}, conversation: fingerprint(at, c.firstPrompt())}
	switch {
	case index < len(sc.Turns):
		answer.turn = turn
	case s.End != nil:
		answer.turn = *s.End
	default:
		answer.turn = Turn{Text: fmt.Sprintf("[scripted model: scenario %q ends after %d turns]", sc.Name,
			len(sc.Turns))}
	}
	answer.turn = s.expand(answer.turn, c, at)
	return answer
}

// scenario finds the scenario that answers a conversation, or nil.
func (s *Script) scenario(c conversation) *Scenario {
	for _, sc := range s.all {
		if sc.When.holds(c) {
			return sc
		}
	}
	return nil
}

// replySpan is one reply in a conversation: the pieces between two things that are not the model's.
type replySpan struct {
	start   int
	callIDs []string
}

func (c conversation) replies() []replySpan {
	var spans []replySpan
	inReply := false
	for i, s := range c.steps {
		if s.kind != stepReply {
			inReply = false
			continue
		}
		if !inReply {
			spans = append(spans, replySpan{start: i})
			inReply = true
		}
		if s.callID != "" {
			last := &spans[len(spans)-1]
			last.callIDs = append(last.callIDs, s.callID)
		}
	}
	return spans
}

// replay takes note of one reply. Where it has an id of ours, the id says which turn it was; else
// the script is asked what it answered then.
func (p *progress) replay(sc *Scenario, before conversation, callIDs []string, at cell) {
	for _, id := range callIDs {
		index, visit, ok := parseCallID(id)
		if !ok {
			continue
		}
		here := position{sc.Name, index, visit}
		if p.hasAny && p.last == here {
			return // a client has split one reply in two
		}
		p.visits[index] = max(p.visits[index], visit+1)
		p.next, p.last, p.hasAny = index+1, here, true
		return
	}
	index, _ := sc.resolve(p.next, before, p.visits, at)
	p.last, p.hasAny = position{sc.Name, index, p.visits[index]}, true
	p.visits[index]++
	p.next = index + 1
}

// maxJumps bounds the cases, choices and gotos followed for one reply: a script can loop.
const maxJumps = 1000

// resolve follows cases, choices and gotos from a turn to what is said. It returns the index of the
// turn that says it, which is the number of turns where the conversation has run past the end.
func (sc *Scenario) resolve(index int, c conversation, visits map[int]int, at cell) (int, Turn) {
	if index >= len(sc.Turns) {
		return len(sc.Turns), Turn{}
	}
	turn := sc.Turns[index]
	for jump := range maxJumps {
		if next, ok := firstCase(turn.Cases, c); ok {
			turn = next
			continue
		}
		switch {
		case len(turn.Choices) > 0:
			key := at.key
			if at.seed != "" { // another name of a cell is not another chance
				key = ""
			}
			turn = draw(turn.Choices, fmt.Sprintf("%q %q %q %q %d %d %d", at.script, key, at.seed, sc.Name, index,
				visits[index], jump))
		case turn.Goto != "":
			index = sc.labels[turn.Goto]
			turn = sc.Turns[index]
		case !turn.says():
			return index, Turn{Text: fmt.Sprintf("[scripted model: no case of turn %d fits]", index)}
		default:
			return index, turn
		}
	}
	return index, Turn{Text: fmt.Sprintf("[scripted model: turn %d goes round in circles]", index)}
}

func firstCase(cases []Case, c conversation) (Turn, bool) {
	for _, candidate := range cases {
		if candidate.When.holds(c) {
			return candidate.Turn, true
		}
	}
	return Turn{}, false
}

// draw picks a choice by weight from a hash of its arguments.
func draw(choices []Choice, occasion string) Turn {
	sum := sha256.Sum256([]byte(occasion))
	fraction := float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53)
	var total float64
	for _, c := range choices {
		total += c.weight()
	}
	point := fraction * total
	for _, c := range choices {
		point -= c.weight()
		if point < 0 {
			return c.Turn
		}
	}
	return choices[len(choices)-1].Turn
}

// fingerprint returns a short name for a conversation.
func fingerprint(at cell, firstPrompt string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", at.script, at.key, at.seed, firstPrompt))
	return hex.EncodeToString(sum[:4])
}

var (
	callIDPattern = lazyregexp.New(`_t(\d{1,6})v(\d{1,6})c\d`)
	idUnsafe      = lazyregexp.New(`[^A-Za-z0-9-]+`)
)

// callID makes the id of the k-th call of a reply. It stays under the 64 characters that OpenAI
// allows.
func (p pick) callID(prefix string, k int) string {
	scenario := idUnsafe.Get().ReplaceAllString(p.scenario, "-")
	scenario = scenario[:min(len(scenario), 16)]
	return fmt.Sprintf("%s_%s_%s_t%dv%dc%d", prefix, scenario, p.conversation, p.index, p.visit, k)
}

func parseCallID(id string) (index, visit int, ok bool) {
	m := callIDPattern.FindStringSubmatch(id)
	if m == nil {
		return 0, 0, false
	}
	index, errIndex := strconv.Atoi(m[1])
	visit, errVisit := strconv.Atoi(m[2])
	return index, visit, errIndex == nil && errVisit == nil
}

// preamble is the text that clients put before the output of a tool.
var preamble = lazyregexp.New(`(?s)\A(?:Chunk ID: |Wall time|Script completed|Exit code: ).*?\nOutput:\n+`)

// withoutPreamble makes ${last_result} the same for all clients. Conditions and captures see the
// whole result.
func withoutPreamble(result string) string { return preamble.Get().ReplaceAllString(result, "") }

// expand returns the turn with ${name} replaced in its texts and inputs.
func (s *Script) expand(t Turn, c conversation, at cell) Turn {
	vars := map[string]string{
		"prompt": c.lastPrompt(), "last_result": withoutPreamble(c.lastResult()), "cwd": c.cwd(), "model": c.model,
		"key": at.key, "seed": at.seed,
	}
	maps.Copy(vars, s.Vars)
	for _, capture := range s.Captures {
		if value, ok := capture.find(c); ok {
			vars[capture.Var] = value
		}
	}
	var plain, quoted []string
	for name, value := range vars {
		inJSON, err := json.Marshal(value)
		if err != nil {
			continue
		}
		plain = append(plain, "${"+name+"}", value)
		quoted = append(quoted, "${"+name+"}", string(inJSON[1:len(inJSON)-1]))
	}
	text, inJSON := strings.NewReplacer(plain...), strings.NewReplacer(quoted...)
	t.Text, t.Thinking = text.Replace(t.Text), text.Replace(t.Thinking)
	t.Calls = expandCalls(t.Calls, text, inJSON)
	return t
}

func expandCalls(calls []Call, text, inJSON *strings.Replacer) []Call {
	var expanded []Call
	for _, c := range calls {
		for _, field := range []*string{
			&c.Bash, &c.Read, &c.Write, &c.Edit, &c.Glob, &c.Grep, &c.MCP, &c.Tool,
			&c.Content, &c.Old, &c.New, &c.In, &c.Raw,
		} {
			*field = text.Replace(*field)
		}
		if len(c.Input) > 0 {
			c.Input = json.RawMessage(inJSON.Replace(string(c.Input)))
		}
		c.FirstOf = expandCalls(c.FirstOf, text, inJSON)
		expanded = append(expanded, c)
	}
	return expanded
}

// find reads the captured value out of a conversation.
func (cp Capture) find(c conversation) (string, bool) {
	var from string
	switch cp.From {
	case "prompt":
		from = c.lastPrompt()
	case "first_prompt":
		from = c.firstPrompt()
	case "results":
		from = strings.Join(c.results(), "\n")
	case "system":
		from = c.system
	default:
		from = c.lastResult()
	}
	re, err := regexp.Compile("(?m)" + cp.Regex)
	if err != nil {
		return "", false
	}
	m := re.FindStringSubmatch(from)
	if m == nil {
		return "", false
	}
	return m[min(1, len(m)-1)], true
}
