package query

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/query/internal/scan"
	"github.com/fit-eval/fit/session"
)

// Action is one thing that an agent did, in terms that are the same for all agents.
type Action struct {
	Turn    int    `json:"turn"` // the model's turn, counted from the agent's start
	Line    int64  `json:"line"`
	Kind    string `json:"kind"`   // read, search, edit, write, test, bash, …
	Target  string `json:"target"` // the file, relative to where the agent works, or the command
	IsError bool   `json:"isError"`
	id      string
}

func (a *Action) same(b *Action) bool { return a.Kind == b.Kind && a.Target == b.Target }

// Alignment sets the actions of two agents side by side.
type Alignment struct {
	A AlignedSide `json:"a"`
	B AlignedSide `json:"b"`
	// Distance is the number of actions that one would have to add, leave out or aim elsewhere.
	Distance   int     `json:"distance"`
	Similarity float64 `json:"similarity"` // 1 for equal sequences, 0 for sequences without anything in common
	// FirstDivergence is the first step in which the two differ, nil if there is none.
	FirstDivergence *int          `json:"firstDivergence"`
	Steps           []AlignedStep `json:"steps"`
}

// AlignedSide is one of the two agents.
type AlignedSide struct {
	File    string   `json:"file"`
	Actions []Action `json:"actions"`
	Loops   []Loop   `json:"loops"`
	Rereads []Reread `json:"rereads"`
}

// AlignedStep is a pair of actions, or an action that only one of the two took.
type AlignedStep struct {
	Op string  `json:"op"` // match, change, only-a, only-b
	A  *Action `json:"a"`
	B  *Action `json:"b"`
}

// The operations of an alignment.
const (
	OpMatch  = "match"
	opChange = "change" // the same kind of action, aimed elsewhere
	opOnlyA  = "only-a"
	opOnlyB  = "only-b"
)

// Mark returns the step in one character.
func (s AlignedStep) Mark() string {
	switch s.Op {
	case OpMatch:
		return "="
	case opChange:
		return "~"
	case opOnlyA:
		return "<"
	}
	return ">"
}

// Loop is an action, or a short sequence of them, that was repeated in a row without anything else
// in between.
type Loop struct {
	Action string `json:"action"`
	Times  int    `json:"times"`
	Turn   int    `json:"turn"`
}

// Reread is a file that was read again although nothing had changed it.
type Reread struct {
	Path  string `json:"path"`
	Times int    `json:"times"`
}

// maxActions bounds the work: the alignment takes time in proportion to the product of the two
// numbers of actions.
const maxActions = 20000

// Align aligns the actions of two traces by edit distance.
func Align(ctx context.Context, a, b *Trace) (*Alignment, error) {
	var al Alignment
	var err error
	if al.A, err = a.alignedSide(ctx); err != nil {
		return nil, err
	}
	if al.B, err = b.alignedSide(ctx); err != nil {
		return nil, err
	}
	al.Steps = appendAlignment([]AlignedStep{}, al.A.Actions, al.B.Actions)
	for i, step := range al.Steps {
		if step.Op == OpMatch {
			continue
		}
		al.Distance++
		if al.FirstDivergence == nil {
			al.FirstDivergence = &i
		}
	}
	longest := max(1, len(al.A.Actions), len(al.B.Actions))
	al.Similarity = max(0, 1-float64(al.Distance)/float64(longest))
	return &al, nil
}

func (t *Trace) alignedSide(ctx context.Context) (AlignedSide, error) {
	actions, err := t.actions(ctx)
	if err != nil {
		return AlignedSide{}, err
	}
	return AlignedSide{
		File:    t.Name(),
		Actions: actions,
		Loops:   loops(actions),
		Rereads: rereads(actions),
	}, nil
}

// actions decodes the tool calls of the wanted lanes with the dialects of the agents, the stream
// dialect included.
func (t *Trace) actions(ctx context.Context) ([]Action, error) {
	c := &actionCollector{trace: t, lanes: map[string]*actionLane{}, actions: []Action{}}
	if t.doc != nil {
		_, err := t.walk(ctx, plan{visit: c.turn})
		return c.actions, err
	}
	err := t.batches(ctx, plan{}, c.batch)
	t.problems, t.noEvents = c.problems, len(c.lanes) == 0 && !c.found
	return c.actions, err
}

type actionCollector struct {
	trace   *Trace
	lanes   map[string]*actionLane
	actions []Action
	found   bool // there was an event of the orchestrator

	problems Problems
}

type actionLane struct {
	decoder session.Decoder
	fold    *session.Fold
}

func (c *actionCollector) batch(b *scan.Batch) error {
	c.problems.take(b)
	for i := range b.Events {
		ev := &b.Events[i]
		name := ev.Lane
		if ev.Bare {
			name = bareLane
		}
		c.found = c.found || ev.Kind == scan.Lifecycle
		if ev.Kind == scan.Lifecycle || ev.Native == nil || !c.trace.opts.wants(name) {
			continue
		}
		if lane := c.lane(name, ev); lane != nil {
			lane.decoder.Decode(ev.Native, session.Stamp{Line: ev.Line, Ts: ev.Ts, Lane: name}, lane.fold)
		}
	}
	return nil
}

func (c *actionCollector) lane(name string, ev *scan.Event) *actionLane {
	if lane := c.lanes[name]; lane != nil {
		return lane
	}
	dialect := session.StreamDialect("")
	if ev.Kind == scan.Other {
		var ok bool
		if dialect, ok = c.trace.opts.Dialects.Of(ev.Native); !ok {
			return nil
		}
	}
	lane := &actionLane{decoder: dialect.New()}
	lane.fold = session.NewFold(session.Options{
		Flat:    true,
		OnEvent: func(e *session.EnrichedEvent) { c.took(lane, e) },
	})
	c.lanes[strings.Clone(name)] = lane
	return lane
}

func (c *actionCollector) took(lane *actionLane, e *session.EnrichedEvent) {
	switch e.Kind {
	case session.KindToolCall:
		if len(c.actions) >= maxActions {
			return
		}
		c.actions = append(c.actions, Action{
			Turn:   e.TurnIndex,
			Line:   e.RawLine,
			Kind:   e.Tool.Effective(),
			Target: strings.Join(strings.Fields(c.target(e.Tool, lane.fold.Identity().Cwd)), " "),
			id:     e.Tool.CallID,
		})
	case session.KindToolResult:
		c.failed(e.Result.CallID, e.Result.IsError)
	}
}

// target returns the target of a call: the files, including those that a shell command reads, else
// the command without the shell around it, else the arguments.
func (c *actionCollector) target(call *session.ToolCall, cwd string) string {
	redactor := c.trace.opts.Redactor
	switch {
	case call.Command != "" && (call.Effective() != session.ToolRead || len(call.Paths) == 0):
		return redactor.String(relativeTo(cwd, session.Script(call.Command)))
	case len(call.Paths) == 0:
		return string(redactor.JSON(jsonenc.Compact(call.Args)))
	case call.Command == "":
		return redactor.String(filepath.Clean(relativeTo(cwd, call.Paths[0])))
	}
	paths := make([]string, len(call.Paths))
	for i, path := range call.Paths {
		paths[i] = filepath.Clean(relativeTo(cwd, path))
	}
	return redactor.String(strings.Join(paths, " "))
}

func (c *actionCollector) failed(id string, isError bool) {
	for i := len(c.actions) - 1; isError && i >= 0; i-- {
		if c.actions[i].id == id {
			c.actions[i].IsError = true
			return
		}
	}
}

// turn takes the actions of a structured document, whose agents are of one kind.
func (c *actionCollector) turn(e *Cursor) error {
	entry := e.Entry()
	if entry.Role == RoleToolResult {
		c.failed(textOf(entry.ToolUseID), entry.IsError)
		return nil
	}
	for i := range entry.Content {
		b := &entry.Content[i]
		if b.Type != BlockToolUse || len(c.actions) >= maxActions {
			continue
		}
		target, ok := b.command()
		if paths := b.paths(); !ok && len(paths) > 0 {
			target = paths[0]
		} else if !ok {
			target = string(jsonenc.Compact(b.Input))
		}
		c.actions = append(c.actions, Action{
			Turn:   entry.Index,
			Line:   entry.Line,
			Kind:   strings.ToLower(b.Name),
			Target: strings.Join(strings.Fields(target), " "),
			id:     textOf(b.ToolUseID),
		})
	}
	return nil
}

// relativeTo removes the agent's own directory from a target, so that two agents in two directories
// can be compared.
func relativeTo(cwd, target string) string {
	if cwd == "" || cwd == "/" {
		return target
	}
	if rel, ok := strings.CutPrefix(target, strings.TrimSuffix(cwd, "/")+"/"); ok && filepath.IsAbs(target) {
		return rel
	}
	return strings.ReplaceAll(target, cwd+"/", "")
}

// loops finds sequences of one to three actions that were repeated in a row, three times or more.
func loops(actions []Action) []Loop {
	found := []Loop{}
	for i := 0; i < len(actions); {
		best, size := 0, 0
		for n := 1; n <= 3; n++ {
			times := repeats(actions[i:], n)
			if times >= 3 && times*n > best*size {
				best, size = times, n
			}
		}
		if best == 0 {
			i++
			continue
		}
		names := make([]string, size)
		for j := range size {
			names[j] = actions[i+j].Kind + " " + actions[i+j].Target
		}
		found = append(found, Loop{Action: strings.Join(names, " → "), Times: best, Turn: actions[i].Turn})
		i += best * size
	}
	return found
}

func repeats(actions []Action, n int) int {
	times := 1
	for (times+1)*n <= len(actions) {
		for j := range n {
			if !actions[times*n+j].same(&actions[j]) {
				return times
			}
		}
		times++
	}
	return times
}

// rereads finds files that were read again although no edit, write or command had come in between
// that may have changed them.
func rereads(actions []Action) []Reread {
	seen, counts, order := map[string]bool{}, map[string]int{}, []string{}
	for i := range actions {
		a := &actions[i]
		switch a.Kind {
		case "read":
			if a.IsError {
				continue
			}
			if seen[a.Target] {
				if counts[a.Target] == 0 {
					order = append(order, a.Target)
				}
				counts[a.Target]++
			}
			seen[a.Target] = true
		case "edit", "write":
			delete(seen, a.Target)
		case "bash":
			clear(seen)
		}
	}
	found := []Reread{}
	for _, path := range order {
		found = append(found, Reread{path, counts[path]})
	}
	return found
}
