package query

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sort"

	"github.com/fit-eval/fit/internal/query/internal/scan"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// errStop is returned by a visitor that has seen enough.
var errStop = errors.New("seen enough")

// Walk shows every entry of the wanted lanes to visit and returns what it learned about the whole.
// After errStop the Info is incomplete.
func (t *Trace) Walk(ctx context.Context, visit func(*Cursor) error) (*Info, error) {
	return t.walk(ctx, plan{visit: visit, accounts: true})
}

// plan is one pass over a trace.
type plan struct {
	visit func(*Cursor) error
	// accounts is set by questions about turns, tokens and cost, which take longer.
	accounts bool
	// keep runs with the scan and lets a visitor see only what matters; entries are numbered all
	// the same. It must be a function of the event alone.
	keep scan.Filter
	// lifecycle, if set, sees the events of the orchestrator.
	lifecycle func(*scan.Event)
	// start is where reading begins; the zero value is the beginning.
	start checkpoint
}

func (t *Trace) walk(ctx context.Context, p plan) (*Info, error) {
	w := newWalker(t, p)
	var err error
	switch {
	case t.doc != nil:
		err = t.doc.walk(ctx, w)
	default:
		err = t.batches(ctx, p, w.batch)
	}
	t.problems, t.noEvents = w.info.Problems, false
	if errors.Is(err, errStop) {
		t.problems.NoEnd = false // the end was not looked for
		return w.info, nil
	}
	if err != nil {
		return nil, err
	}
	if t.doc == nil {
		t.noEvents = !w.found
		w.info.finish()
		t.missing = t.absent(w.info)
		t.keepCheckpoints(w)
	}
	return w.info, nil
}

// absent lists the lanes that were asked for and that the trace does not have.
func (t *Trace) absent(info *Info) []string {
	return slices.DeleteFunc(slices.Clone(t.opts.Lanes), func(lane string) bool { return info.lanes[lane] != nil })
}

// batches hands the scanned lines of the file to consume.
func (t *Trace) batches(ctx context.Context, p plan, consume func(*scan.Batch) error) error {
	in, limit, done, err := t.stream(p.start.offset)
	if err != nil {
		return err
	}
	defer done()
	return scan.Parallel(ctx, scan.NewBlocks(in, limit).After(p.start.offset, p.start.lines), p.keep, consume)
}

// checkpoint is a place in a file where reading can begin.
type checkpoint struct {
	offset, lines int64 // before it
	entry         int   // the first one after it
}

// keepCheckpoints remembers where entries are, after a pass over the whole file. A lane that speaks
// another dialect can only be read from the beginning.
func (t *Trace) keepCheckpoints(w *walker) {
	fromBeginning := func(l *laneState) bool { return l.decoded != nil }
	if t.seekable && w.plan.start == (checkpoint{}) && !slices.ContainsFunc(w.info.order, fromBeginning) {
		t.checkpoints = w.places
	}
}

// before returns the last place from which an entry can be found.
func (t *Trace) before(entry int) checkpoint {
	after := sort.Search(len(t.checkpoints), func(i int) bool { return t.checkpoints[i].entry > entry })
	if after == 0 {
		return checkpoint{}
	}
	return t.checkpoints[after-1]
}

// walker numbers the entries of a trace and collects the Info.
type walker struct {
	trace  *Trace
	plan   plan
	info   *Info
	next   int // the index of the next entry
	cursor Cursor
	found  bool // some event is of a kind that is known
	places []checkpoint
}

func newWalker(t *Trace, p plan) *walker {
	return &walker{
		trace: t,
		plan:  p,
		info:  newInfo(&t.opts),
		next:  p.start.entry,
	}
}

func (w *walker) batch(b *scan.Batch) error {
	w.info.Problems.take(b)
	if len(b.Events) > 0 {
		w.places = append(w.places, checkpoint{b.Events[0].Offset, b.Events[0].Line - 1, w.next})
	}
	for i := range b.Events {
		if err := w.event(&b.Events[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) event(ev *scan.Event) error {
	w.found = w.found || ev.Kind != scan.Other
	if ev.Kind == scan.Lifecycle {
		w.info.lifecycle(ev.Native)
		if w.plan.lifecycle != nil {
			w.plan.lifecycle(ev)
		}
		return nil
	}
	l := w.info.lane(ev.Lane, ev.Bare)
	l.noteTime(ev.Ts)
	if ev.Kind == scan.Other {
		return w.other(l, ev)
	}
	if !l.stream {
		l.stream, l.Dialect = true, cmp.Or(l.Dialect, session.StreamDialectName)
	}
	if w.plan.accounts {
		if l.account == nil {
			l.account = newAccount(l, w.info.prices)
		}
		l.account.event(l, ev)
	}
	switch {
	case !l.wanted:
	case ev.Kind == scan.Result:
		v, _ := w.info.parser.Parse(ev.Native)
		w.info.result(v)
	case ev.Kind == scan.System && string(ev.Subtype) == "init":
		w.info.init(l, ev)
	}
	return w.entries(l, ev)
}

// entries shows the entries of one event of the stream dialect.
func (w *walker) entries(l *laneState, ev *scan.Event) error {
	w.cursor = Cursor{
		ev:    ev,
		lane:  l,
		Line:  ev.Line,
		match: ev.Keep,

		redactor: w.trace.opts.Redactor,
	}
	if l.wanted {
		for i := range ev.Parts {
			if ev.Parts[i].Type == scan.Broken {
				w.info.Problems.BrokenBlocks++
			}
		}
	}
	for role, part := range entriesOf(ev) {
		w.cursor.Role, w.cursor.part = role, part
		if role == RoleUser && l.wanted && w.info.TaskPrompt == nil {
			w.info.TaskPrompt = new(w.cursor.decode().redact(w.cursor.redactor).Text("\n"))
		}
		if err := w.show(l, role); err != nil {
			return err
		}
	}
	return nil
}

// entriesOf returns the roles of the entries that an event of the stream dialect makes, and for
// tool results which content block they are.
func entriesOf(ev *scan.Event) iter.Seq2[Role, int] {
	return func(yield func(Role, int) bool) {
		switch ev.Kind {
		case scan.System:
			yield(RoleSystem, 0)
		case scan.Assistant:
			yield(RoleAssistant, 0)
		case scan.User:
			if ev.HasText() && !yield(RoleUser, 0) {
				return
			}
			for i := range ev.Parts {
				if ev.Parts[i].Type == scan.ToolResult && !yield(RoleToolResult, i) {
					return
				}
			}
		case scan.Other, scan.Result, scan.Lifecycle:
		}
	}
}

// show numbers one entry and hands it to the visitor.
func (w *walker) show(l *laneState, role Role) error {
	w.cursor.Index, w.cursor.Role = w.next, role
	if w.cursor.ev != nil {
		w.cursor.entry = nil
	}
	w.next++
	if !l.wanted {
		return nil
	}
	l.Turns++
	w.info.TurnCount++
	if w.plan.visit == nil || !w.cursor.match {
		return nil
	}
	return w.plan.visit(&w.cursor)
}

// other decodes an event of another dialect, if the lane speaks one.
func (w *walker) other(l *laneState, ev *scan.Event) error {
	switch string(ev.Type) {
	case trace.TypeRaw, trace.TypeStderr, trace.TypeSkipped:
		return nil
	case trace.TypeDropped:
		v, _ := w.info.parser.Parse(ev.Native)
		w.info.Problems.Dropped += v.Get("count").Int64()
		return nil
	}
	if l.decoded == nil && (l.stream || !w.adopt(l, ev.Native)) {
		return nil
	}
	w.found = true
	for _, entry := range l.decoded.decode(ev.Native, session.Stamp{Line: ev.Line, Ts: ev.Ts, Lane: l.Lane}) {
		entry.Index = w.next
		if err := w.showEntry(l, entry.redact(w.trace.opts.Redactor)); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) showEntry(l *laneState, entry *Entry) error {
	if l.wanted && entry.Role == RoleUser && w.info.TaskPrompt == nil {
		w.info.TaskPrompt = new(entry.Text("\n"))
	}
	w.cursor = Cursor{
		lane:  l,
		entry: entry,
		Line:  entry.Line,
		match: true,
	}
	return w.show(l, entry.Role)
}

// adopt finds the dialect of a lane: the one its agent_start names, else the one that recognises
// the event.
func (w *walker) adopt(l *laneState, native []byte) bool {
	dialect, ok := w.trace.opts.Dialects.Named(l.Dialect)
	if !ok {
		dialect, ok = w.trace.opts.Dialects.Of(native)
	}
	if !ok || dialect.Name == session.StreamDialectName {
		return false
	}
	l.decoded = newDecodedLane(dialect, l, w.trace.opts.Prices)
	return true
}
