package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/session"
)

// session writes a team's session of some length.
func teamTrace(t testing.TB, rounds int) string {
	t.Helper()
	var lines []string
	emit := func(lane, event string) { lines = append(lines, enveloped(lane, len(lines), event)) }
	emit("orchestrator", `{"type":"meta","discussion_id":"D"}`)
	for i := range rounds {
		lane := []string{"lead", "worker"}[i%2]
		if i < 2 {
			emit(lane, initEvent)
			emit(lane, strings.ReplaceAll(prompt, "Fix it", "Task of "+lane))
		}
		id := fmt.Sprintf("t%d", i)
		emit(lane, strings.NewReplacer(`"t2"`, `"`+id+`"`, `"m2"`,
			fmt.Sprintf(`"m%d"`, i)).Replace([]string{askBash, strings.ReplaceAll(askRead, "t1", "t2")}[i%3%2]))
		emit(lane, strings.ReplaceAll([]string{gotFailure, strings.ReplaceAll(gotRead, "t1", "t2")}[i%2], `"t2"`,
			`"`+id+`"`))
		if i%5 == 0 {
			lines = append(lines, "not json")
			emit(lane, sayDone)
		}
	}
	emit("lead", goodResult)
	emit("worker", goodResult)
	emit("orchestrator", `{"type":"summary","verdict":"success","turns":3}`)
	return write(t, strings.Join(lines, "\n")+"\n")
}

// answers is what a trace says to many questions.
func answers(t testing.TB, trace *Trace) map[string]string {
	t.Helper()
	ctx := context.Background()
	all := map[string]string{}
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	collect := func(name string) func(*Entry) error {
		return func(entry *Entry) error { all[name] += asJSON(t, entry) + "\n"; return nil }
	}
	n, err := trace.Count(ctx)
	fail(err)
	all["count"] = fmt.Sprint(n)
	overview, _, err := trace.Overview(ctx)
	fail(err)
	all["overview"] = asJSON(t, overview)
	stats, _, err := trace.Stats(ctx)
	fail(err)
	all["stats"] = asJSON(t, stats)
	tools, _, err := trace.Tools(ctx)
	fail(err)
	all["tools"] = asJSON(t, tools)
	fail(trace.Range(ctx, 3, 9, collect("batch")))
	fail(trace.Range(ctx, -4, -1, collect("batch from the end")))
	fail(trace.Tail(ctx, 5, collect("tail")))
	err = trace.Filter(ctx, Criteria{Error: true}, collect("errors"))
	fail(err)
	err = trace.Filter(ctx, Criteria{Role: RoleUser}, collect("user"))
	fail(err)
	err = trace.Filter(ctx, Criteria{Role: RoleAssistant, Tool: "Bash"}, collect("bash"))
	fail(err)
	for name, criteria := range map[string]Criteria{
		"failed": {Error: true}, "failed results": {Role: RoleToolResult, Error: true},
		"failed words": {Role: RoleAssistant, Error: true}, "read": {Tool: "Read"},
		"tool of nobody": {Tool: "Nothing"}, "failed tool": {Tool: "Bash", Error: true},
		"results": {Role: RoleToolResult}, "system": {Role: RoleSystem}, "all": {},
	} {
		err = trace.Filter(ctx, criteria, collect(name))
		fail(err)
	}
	fail(trace.Tool(ctx, "Read", collect("tool")))
	fail(trace.Reasoning(ctx, 2, 30, func(r Reasoning) error { all["reasoning"] += asJSON(t, r) + "\n"; return nil }))
	for i := range 12 {
		entry, err := trace.Entry(ctx, i)
		fail(err)
		all["turns"] += asJSON(t, entry) + "\n"
	}
	cost, err := trace.Cost(ctx)
	fail(err)
	all["cost"] = asJSON(t, cost)
	return all
}

func TestWhatIsKnownOfATraceChangesNoAnswer(t *testing.T) {
	path := teamTrace(t, 5000)
	for _, lanes := range [][]string{nil, {"worker"}, {"nobody"}} {
		whole := open(t, path, Options{Lanes: lanes})
		if _, err := whole.Count(context.Background()); err != nil {
			t.Fatal(err)
		}
		known := open(t, path, Options{Known: whole, Lanes: lanes})
		last := known.before(1 << 30)
		if last.entry == 0 || known.before(last.entry-1).entry >= last.entry {
			t.Fatalf("no places are known: %+v", known.checkpoints)
		}
		for _, n := range []int{0, last.entry - 1, last.entry, last.entry + 7, 1 << 29} {
			ctx := context.Background()
			unknown := open(t, path, Options{Lanes: lanes})
			one, err := unknown.Entry(ctx, n)
			two, knownErr := known.Entry(ctx, n)
			var first, second string
			add := func(to *string) func(*Entry) error {
				return func(e *Entry) error { *to += fmt.Sprintln(e.Line, asJSON(t, e)); return nil }
			}
			err = errors.Join(err, knownErr, unknown.Range(ctx, n-2, n+9, add(&first)),
				known.Range(ctx, n-2, n+9, add(&second)))
			if err != nil || !cmp.Equal(one, two, cmp.AllowUnexported(Entry{})) || first != second {
				t.Errorf("lanes %v, entry %d: %v\n%s\nknown:\n%s", lanes, n, err, first, second)
			}
		}
	}
}

// counting is a decoder whose events mean nothing without those before them.
type counting struct{ seen int }

func (c *counting) Decode(_ []byte, at session.Stamp, to *session.Fold) {
	c.seen++
	to.Message(session.Origin{Stamp: at}, "assistant", strconv.Itoa(c.seen), "")
}

func TestALaneOfAnotherDialectIsReadFromTheBeginning(t *testing.T) {
	opts := Options{Dialects: session.Dialects{{
		Name:      "counting",
		Recognise: func([]byte) bool { return true },
		New:       func() session.Decoder { return new(counting) },
	}}}
	const lines = 30
	path := write(t, strings.Repeat(`{"type":"x","padding":"`+strings.Repeat("x", 100<<10)+"\"}\n", lines))
	whole := open(t, path, opts)
	if n, err := whole.Count(context.Background()); err != nil || n != lines {
		t.Fatal(n, err)
	}
	opts.Known = whole
	last, err := open(t, path, opts).Entry(context.Background(), lines-1)
	if err != nil || last.Text("") != strconv.Itoa(lines) {
		t.Errorf("the last of %d entries is %+v: %v", lines, last, err)
	}
}

// countingReader counts the bytes that are read.
type countingReader struct {
	io.ReaderAt
	bytes, calls int
}

func (c *countingReader) ReadAt(p []byte, at int64) (int, error) {
	c.bytes, c.calls = c.bytes+len(p), c.calls+1
	return c.ReaderAt.ReadAt(p, at)
}

func TestOnlyTheLinesThatMatterAreRead(t *testing.T) {
	line := askBash + "\n"
	text := strings.Repeat(line, 1000)
	file := &countingReader{ReaderAt: strings.NewReader(text)}
	fetch := func(lines ...int) (calls, bytes int) {
		t.Helper()
		file.calls, file.bytes = 0, 0
		fetcher := lineFetcher{file: file, size: int64(len(text))}
		for _, n := range lines {
			ev, err := fetcher.fetch(int64(n*len(line)), len(askBash))
			if err != nil || string(ev.Raw) != askBash {
				t.Fatalf("line %d: %v", n, err)
			}
		}
		return file.calls, file.bytes
	}
	if calls, bytes := fetch(100, 300, 900); calls != 3 || bytes != 3*len(askBash) {
		t.Errorf("three lines far apart: %d bytes in %d reads, want %d in 3", bytes, calls, 3*len(askBash))
	}
	neighbours := make([]int, 200)
	for i := range neighbours {
		neighbours[i] = 100 + i
	}
	if calls, _ := fetch(neighbours...); calls > 3 {
		t.Errorf("200 neighbours took %d reads", calls)
	}
	fetch(900, 100, 101, 500) // backwards too
}
