package query

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// answers is what a trace says to all questions that the index speeds up.
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
	n, _, err := trace.Count(ctx)
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
	_, err = trace.Filter(ctx, Criteria{Error: true}, collect("errors"))
	fail(err)
	_, err = trace.Filter(ctx, Criteria{Role: RoleUser}, collect("user"))
	fail(err)
	_, err = trace.Filter(ctx, Criteria{Role: RoleAssistant, Tool: "Bash"}, collect("bash"))
	fail(err)
	for name, criteria := range map[string]Criteria{
		"failed": {Error: true}, "failed results": {Role: RoleToolResult, Error: true},
		"failed words": {Role: RoleAssistant, Error: true}, "read": {Tool: "Read"},
		"tool of nobody": {Tool: "Nothing"}, "failed tool": {Tool: "Bash", Error: true},
		"results": {Role: RoleToolResult}, "system": {Role: RoleSystem}, "all": {},
	} {
		_, err = trace.Filter(ctx, criteria, collect(name))
		fail(err)
	}
	fail(trace.Tool(ctx, "Read", collect("tool")))
	fail(trace.Reasoning(ctx, 2, 30, func(r Reasoning) error { all["reasoning"] += asJSON(t, r) + "\n"; return nil }))
	for i := range 12 {
		entry, err := trace.Entry(ctx, i)
		fail(err)
		all["turns"] += asJSON(t, entry) + "\n"
	}
	cost, _, err := trace.Cost(ctx)
	fail(err)
	all["cost"] = asJSON(t, cost)
	return all
}

func TestTheIndexChangesNoAnswer(t *testing.T) {
	path := teamTrace(t, 60)
	for _, lanes := range [][]string{nil, {"worker"}, {"nobody"}} {
		want := answers(t, open(t, path, Options{IndexFrom: -1, Lanes: lanes}))
		first := open(t, path, Options{IndexFrom: 1})
		if _, _, err := first.Count(context.Background()); err != nil {
			t.Fatal(err)
		}
		indexed := open(t, path, Options{IndexFrom: 1, Lanes: lanes})
		if indexed.index == nil {
			t.Fatal("there is no index")
		}
		if diff := cmp.Diff(want, answers(t, indexed)); diff != "" {
			t.Errorf("lanes %v (-without +with index):\n%s", lanes, diff)
		}
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
			ev, err := fetcher.fetch(&record{offset: int64(n * len(line)), length: uint32(len(askBash))})
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

func TestTheIndexFollowsTheFile(t *testing.T) {
	path := teamTrace(t, 10)
	opts := Options{IndexFrom: 1}
	count := func() int {
		t.Helper()
		n, _, err := open(t, path, opts).Count(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := count()
	if _, err := os.Stat(path + indexSuffix); err != nil {
		t.Fatalf("no index was left beside the file: %v", err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(prompt + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if got := count(); got != before+1 {
		t.Errorf("%d turns after one was added to %d", got, before)
	}
	if got := count(); got != before+1 {
		t.Errorf("%d turns by the new index, want %d", got, before+1)
	}
}

func TestTheIndexGoesToTheCacheWhereTheDirectoryIsClosed(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("root can write everywhere, so the name beside the trace is taken by a directory")
	}
	path := teamTrace(t, 10)
	if err := os.MkdirAll(filepath.Join(path+indexSuffix, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(t.TempDir(), "cache")
	opts := Options{IndexFrom: 1, CacheDir: cache}
	if _, _, err := open(t, path, opts).Count(context.Background()); err != nil {
		t.Fatal(err)
	}
	if idx := open(t, path, opts).index; idx == nil || filepath.Dir(idx.path) != cache {
		t.Errorf("index %+v, want one in %s", idx, cache)
	}
}

func TestADamagedIndexNeverCrashes(t *testing.T) {
	path := teamTrace(t, 20)
	opts := Options{IndexFrom: 1}
	if _, _, err := open(t, path, opts).Count(context.Background()); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path + indexSuffix)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(good); at += 7 {
		bad := append([]byte{}, good...)
		bad[at] ^= 0xff
		if err := os.WriteFile(path+indexSuffix, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		trace := open(t, path, opts)
		_ = trace.Tail(context.Background(), 3, func(*Entry) error { return nil })
		_, _ = trace.Filter(context.Background(), Criteria{Error: true}, func(*Entry) error { return nil })
		_, _ = trace.Entry(context.Background(), 12)
		_, _, _ = trace.Overview(context.Background())
	}
	for _, size := range []int{0, 10, headerSize, headerSize + 5, len(good) - 3} {
		if err := os.WriteFile(path+indexSuffix, good[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		if n, _, err := open(t, path, opts).Count(context.Background()); err != nil || n == 0 {
			t.Errorf("with %d bytes of an index: %d turns, %v", size, n, err)
		}
	}
}
