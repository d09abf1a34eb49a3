package query

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// ErrStop is returned by a visitor that has seen enough.
var ErrStop = errors.New("seen enough")

// Visitor is shown the turns of a trace in order.
type Visitor func(*Entry) error

// Walk shows every turn of the wanted lanes to visit and returns what it learned about the whole.
// After ErrStop the Info is incomplete.
func (t *Trace) Walk(ctx context.Context, visit Visitor) (*Info, error) {
	return t.walk(ctx, plan{visit: visit})
}

// plan is one pass over a trace.
type plan struct {
	visit Visitor
	// keep runs with the scan and lets a visitor see only what matters; turns are numbered all the
	// same. It must be a function of the event alone.
	keep filter
	// lifecycle, if set, sees the events of the orchestrator.
	lifecycle func(event []byte, line, ts int64)
	// want selects lines by the index, if there is one.
	want func(*record) bool
	// from and to bound the turns that matter, so that the index can be entered in the middle; a to
	// of 0 means no bound. Visitors check for themselves.
	from, to int
}

func (t *Trace) walk(ctx context.Context, p plan) (*Info, error) {
	w := newWalker(t, p)
	var err error
	switch {
	case t.doc != nil:
		err = t.doc.walk(ctx, w)
	case t.index != nil && p.want != nil:
		err = t.index.walk(ctx, w)
		if errors.Is(err, errStaleIndex) {
			return nil, t.dropIndex()
		}
	default:
		err = t.scan(ctx, w)
	}
	t.problems = w.info.Problems
	if errors.Is(err, ErrStop) {
		return w.info, nil
	}
	if err != nil {
		return nil, err
	}
	if t.doc == nil {
		w.info.finish()
		t.missing = t.absent(w.info)
	}
	return w.info, nil
}

// absent lists the lanes that were asked for and that the trace does not have.
func (t *Trace) absent(info *Info) []string {
	has := func(lane string) bool { return info.lanes[lane] != nil }
	if t.index != nil { // the pass may have skipped whole lanes
		has = func(lane string) bool {
			return slices.ContainsFunc(t.index.Lanes, func(known laneTable) bool { return known.Name == lane })
		}
	}
	return slices.DeleteFunc(slices.Clone(t.opts.Lanes), has)
}

// scan reads the whole file.
func (t *Trace) scan(ctx context.Context, w *walker) error {
	in, limit, done, err := t.stream()
	if err != nil {
		return err
	}
	defer done()
	w.maker = t.newIndexMaker(limit)
	if err := parallelScan(ctx, newBlockReader(in, limit), w.plan.keep, w.batch); err != nil {
		return err
	}
	if w.maker != nil {
		w.maker.write(w.info)
	}
	return nil
}

// walker numbers the turns of a trace and collects what is to be known about the whole.
type walker struct {
	trace *Trace
	plan  plan
	info  *Info
	next  int   // the index of the next turn
	lines int64 // before the current block
	base  int64 // of the current block in the file
	entry Entry
	maker *indexMaker // takes notes for an index; nil if none is to be written
}

func newWalker(t *Trace, p plan) *walker {
	return &walker{trace: t, plan: p, info: newInfo(t.opts.wants)}
}

func (w *walker) batch(b *batch) error {
	w.base = b.offset
	w.info.Problems.take(b, w.lines)
	for i := range b.events {
		ev := &b.events[i]
		line, before := w.lines+int64(ev.line)+1, w.next
		if err := w.event(ev, b.data, line); err != nil {
			return err
		}
		if w.maker != nil {
			w.maker.add(ev, b, line, before, w.next-before, w.info)
		}
	}
	w.lines += int64(b.lines)
	return nil
}

func (w *walker) event(ev *event, data []byte, line int64) error {
	if ev.kind == kindLifecycle {
		w.info.lifecycle(ev.event.of(data))
		if w.plan.lifecycle != nil {
			w.plan.lifecycle(ev.event.of(data), line, ev.ts)
		}
		return nil
	}
	l := w.info.lane(ev.lane, ev.bare)
	l.saw(ev.ts)
	switch ev.kind {
	case kindOther:
		return w.other(l, ev, data, line)
	case kindResult:
		if l.wanted {
			w.info.results.add(l.Lane, parseResult(ev.event.of(data)))
		}
	case kindSystem:
		if l.wanted && string(ev.subtype.of(data)) == "init" {
			w.info.init(l, ev.event.of(data), ev.ts)
		}
	}
	if !l.stream {
		l.stream, l.Dialect = true, cmp.Or(l.Dialect, StreamDialect)
	}
	return w.turns(l, ev, data, line)
}

// StreamDialect is the name of the dialect that this package reads by itself.
const StreamDialect = session.StreamDialectName

// turns shows the turns of one event of the stream dialect.
func (w *walker) turns(l *laneState, ev *event, data []byte, line int64) error {
	w.entry = Entry{
		ev:   ev,
		data: data,
		base: w.base,
		Line: line,
		hit:  ev.keep,
	}
	if !ev.bare {
		w.entry.lane = &l.Lane
	}
	switch ev.kind {
	case kindSystem:
		return w.show(l, RoleSystem)
	case kindAssistant:
		if l.wanted {
			w.countBroken(ev)
		}
		return w.show(l, RoleAssistant)
	case kindUser:
		return w.userTurns(l, ev)
	default:
		return nil
	}
}

func (w *walker) countBroken(ev *event) {
	for i := range ev.parts {
		if ev.parts[i].typ == blockBroken {
			w.info.Problems.BrokenBlocks++
		}
	}
}

func (w *walker) userTurns(l *laneState, ev *event) error {
	if l.wanted {
		w.countBroken(ev)
	}
	if ev.hasUserText() {
		w.entry.part = -1
		if l.wanted && w.info.TaskPrompt == nil {
			w.entry.Role = RoleUser
			text := w.entry.decode().Text("\n")
			w.info.TaskPrompt = &text
		}
		if err := w.show(l, RoleUser); err != nil {
			return err
		}
	}
	for i := range ev.parts {
		if ev.parts[i].typ == blockToolResult {
			w.entry.part = i
			if err := w.show(l, RoleToolResult); err != nil {
				return err
			}
		}
	}
	return nil
}

// show numbers one turn and hands it to the visitor.
func (w *walker) show(l *laneState, role Role) error {
	w.entry.Index, w.entry.Role = w.next, role
	if w.entry.ev != nil {
		w.entry.turn = nil
	}
	w.next++
	if !l.wanted {
		return nil
	}
	l.Turns++
	w.info.TurnCount++
	if w.plan.visit == nil || !w.entry.hit {
		return nil
	}
	return w.plan.visit(&w.entry)
}

// other decodes an event of another dialect, if the lane speaks one.
func (w *walker) other(l *laneState, ev *event, data []byte, line int64) error {
	native := ev.event.of(data)
	switch string(ev.typ.of(data)) {
	case trace.TypeRaw, trace.TypeStderr, trace.TypeSkipped:
		return nil
	case trace.TypeDropped:
		w.info.Problems.Dropped += parseInt(memberOf(native, "count"))
		return nil
	}
	if l.other == nil && (l.stream || !w.adopt(l, native)) {
		return nil
	}
	for _, turn := range l.other.decode(native, session.Stamp{Line: line, Ts: ev.ts, Lane: l.Lane}) {
		if err := w.showTurn(l, turn); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) showTurn(l *laneState, turn *Turn) error {
	turn.Index = w.next
	if l.wanted && turn.Role == RoleUser && w.info.TaskPrompt == nil {
		text := turn.Text("\n")
		w.info.TaskPrompt = &text
	}
	w.entry = Entry{turn: turn, Line: turn.Line, hit: true}
	return w.show(l, turn.Role)
}

// adopt finds the dialect of a lane: the one its agent_start names, else the one that recognises
// the event.
func (w *walker) adopt(l *laneState, native []byte) bool {
	dialect, ok := w.trace.opts.Dialects.Named(l.Dialect)
	if !ok {
		dialect, ok = w.trace.opts.Dialects.Of(native)
	}
	if !ok || dialect.Name == StreamDialect {
		return false
	}
	l.other = newForeignLane(dialect, l, w.trace.opts.Prices)
	return true
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
