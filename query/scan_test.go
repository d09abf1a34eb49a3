package query

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/fit-eval/fit/query/internal/gentrace"
	"github.com/fit-eval/fit/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scanAll reads a stream and returns its lines in order: the bytes of events, and the reasons of
// problems.
func scanAll(t testing.TB, in io.Reader, limit int64) (lines []string) {
	t.Helper()
	err := parallelScan(context.Background(), newBlockReader(in, limit), nil, func(b *batch) error {
		for i := range b.events {
			lines = append(lines, string(b.data[b.events[i].start:b.events[i].end]))
		}
		for _, p := range b.problems {
			lines = append(lines, "problem: "+p.reason)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestOrderIsKeptWhateverTheBlocks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var want []string
		for i := range rapid.IntRange(0, 200).Draw(rt, "lines") {
			size := rapid.SampledFrom([]int{0, 10, 1000, 70000, blockSize - 20, blockSize + 7}).Draw(rt, "size")
			if size > 100000 && i > 3 {
				size = 100
			}
			want = append(want, fmt.Sprintf(`{"n":%d,"pad":"%s"}`, i, strings.Repeat("x", size)))
		}
		text := strings.Join(want, "\n")
		if rapid.Bool().Draw(rt, "terminated") && text != "" {
			text += "\n"
		}
		var in io.Reader = strings.NewReader(text)
		if rapid.Bool().Draw(rt, "halves") {
			in = iotest.HalfReader(in)
		}
		got := scanAll(t, in, -1)
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			rt.Fatalf("%d lines, want %d in the same order", len(got), len(want))
		}
	})
}

// repeated is a long stream that is nowhere in memory.
func repeated(s string, n int64) io.Reader {
	return io.LimitReader(&repeater{text: []byte(s)}, n)
}

type repeater struct {
	text []byte
	at   int
}

func (r *repeater) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		c := copy(p[n:], r.text[r.at:])
		n += c
		r.at = (r.at + c) % len(r.text)
	}
	return n, nil
}

func TestAMonsterOfALineIsSkippedAndCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 200 MB")
	}
	in := io.MultiReader(strings.NewReader(`{"a":1}`+"\n"+`{"b":"`), repeated("x", 200<<20),
		strings.NewReader("\"}\n"+`{"c":1}`+"\n"))
	got := scanAll(t, in, -1)
	want := []string{`{"a":1}`, fmt.Sprintf("problem: longer than %d bytes", trace.MaxLine), `{"c":1}`}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("lines %.200v, want %v", got, want)
	}
}

func TestALineOfTheLongestAllowedSizeIsRead(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 64 MB")
	}
	pad := int64(trace.MaxLine - len(`{"b":""}`))
	got := scanAll(t, io.MultiReader(strings.NewReader(`{"b":"`), repeated("x", pad), strings.NewReader("\"}\n")), -1)
	if len(got) != 1 || len(got[0]) != trace.MaxLine {
		t.Errorf("%d lines, the first of %d bytes", len(got), len(got[0]))
	}
}

func TestMemoryStaysFlat(t *testing.T) {
	line := `{"type":"user","message":{"content":"` + strings.Repeat("x", 1<<20-100) + `"}}` + "\n"
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	most := uint64(0)
	err := parallelScan(context.Background(), newBlockReader(repeated(line, int64(len(line))*300), -1), nil,
		func(*batch) error {
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapInuse)
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if grown := int64(most) - int64(before.HeapInuse); grown > 80<<20 {
		t.Errorf("300 MB of lines of 1 MiB took %d MB of memory", grown>>20)
	}
}

func TestAFileThatGrowsIsReadAsItWas(t *testing.T) {
	path := write(t, strings.Join(sample, "\n")+"\n")
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	trace := open(t, path, Options{})
	seen := 0
	info, err := trace.Walk(context.Background(), func(*Entry) error {
		seen++
		_, err := file.WriteString(prompt + "\n" + `{"torn":`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen != 7 || info.Problems.Skipped != 0 {
		t.Errorf("%d turns and problems %+v, want the 7 that were there", seen, info.Problems)
	}
}

func TestAFileThatShrinksIsReadAsFarAsItGoes(t *testing.T) {
	got := scanAll(t, strings.NewReader("{\"a\":1}\n"), 1<<20)
	if len(got) != 1 {
		t.Errorf("lines %v", got)
	}
}

func TestPackedTracesAreRead(t *testing.T) {
	plainText := strings.Join(sample, "\n") + "\n"
	var zipped, zst bytes.Buffer
	zw := gzip.NewWriter(&zipped)
	_, _ = zw.Write([]byte(plainText))
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	sw, err := zstd.NewWriter(&zst)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = sw.Write([]byte(plainText))
	if err := sw.Close(); err != nil {
		t.Fatal(err)
	}
	want := turnsOf(t, open(t, write(t, plainText), Options{}))
	for name, packed := range map[string]string{"gzip": zipped.String(), "zstd": zst.String()} {
		if got := turnsOf(t, open(t, write(t, packed), Options{})); strings.Join(got, "\n") != strings.Join(want,
			"\n") {
			t.Errorf("%s: turns %v", name, got)
		}
		if got := turnsOf(t, open(t, "-", Options{Stdin: strings.NewReader(packed)})); strings.Join(got,
			"\n") != strings.Join(want, "\n") {
			t.Errorf("%s on standard input: turns %v", name, got)
		}
		calls := 0
		if err := open(t, write(t, packed), Options{}).Calls(context.Background(),
			func(*Call) error { calls++; return nil }); err != nil || calls != 2 {
			t.Errorf("%s: %d calls, %v", name, calls, err)
		}
	}
	cut := open(t, write(t, zipped.String()[:zipped.Len()-30]), Options{})
	if _, err := cut.Walk(context.Background(), nil); err != nil {
		t.Errorf("a packed file that was cut off: %v", err)
	}
}

func TestAnErrorOfTheInputIsReported(t *testing.T) {
	broken := errors.New("the disk is gone")
	err := parallelScan(context.Background(),
		newBlockReader(io.MultiReader(strings.NewReader(prompt+"\n"), iotest.ErrReader(broken)),
			-1), nil, func(*batch) error { return nil })
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestACancelledQuestionEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	err := parallelScan(ctx, newBlockReader(repeated(prompt+"\n", 1<<40), -1), nil,
		func(*batch) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// printable fails for what cannot be printed as JSON.
func printable(value any) error {
	raw, err := json.Marshal(value)
	if err == nil && !validJSON(raw) {
		err = fmt.Errorf("not JSON: %s", raw)
	}
	return err
}

func TestGeneratedTracesAreGoodAndRepeatable(t *testing.T) {
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := gentrace.Write(out, gentrace.Config{Bytes: 1 << 20, Seed: 3}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same seed gave two traces")
	}
	report, err := open(t, write(t, first.String()), Options{}).Validate(context.Background(),
		func(f Finding) error { t.Errorf("finding %+v", f); return nil })
	if err != nil || report.Lines < 100 {
		t.Errorf("report %+v, %v", report, err)
	}
}

// FuzzTrace asks every question of whatever there is. Nothing may crash, and the questions must
// agree on the number of turns. Which lines of code run differs a little from time to time, because
// the scan is parallel: fuzz with -fuzzminimizetime 1x, or all time goes into minimising.
func FuzzTrace(f *testing.F) {
	f.Add([]byte(strings.Join(sample, "\n")))
	f.Add([]byte("null\n\xef\xbb\xbf{}\r\n" + prompt + "\n{\"source\":\"a\",\"seq\":1,\"event\":" + askRead +
		"}\n{\"torn"))
	f.Add([]byte(`{"version":"1.2.0","turns":[{"index":0,"role":"assistant","content":[null,{"type":"tool_use"}]},null]}`))
	f.Add([]byte(`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","input":"\ud800"},null]}}` +
		"\n" + `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":{}}]}}`))
	f.Add([]byte(`{"type":"result","modelUsage":{"a":{"inputTokens":"x"}},"usage":{"input_tokens":1e99},"total_cost_usd":-1}`))
	long := strings.Repeat("x", 2*shortString)
	f.Add([]byte(`{"type":"system","subtype":"init","tools":["` + long + `\q"],"x":"` + long + `\u12"}` + "\n" +
		`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"Bash","input":{"command":"` +
		long + `\x"}},{"type":"thinking","thinking":"` + long + `\q"},{"type":"odd","y":"` + long + `\q"}]}}` + "\n" +
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":[{"text":"` + long +
		`\q"}]}]}}` + "\n" +
		`{"type":"result","modelUsage":{"m":{"note":"` + long + `\q"}}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		ctx := context.Background()
		path := write(t, string(content))
		indexed := open(t, path, Options{IndexFrom: 1})
		n, _, err := indexed.Count(ctx)
		if err != nil {
			t.Skip("not readable as a whole: " + err.Error())
		}
		shown := 0
		for _, trace := range []*Trace{open(t, path, Options{IndexFrom: -1}), open(t, path, Options{IndexFrom: 1})} {
			shown = 0
			for _, ask := range []func() error{
				func() error {
					return trace.Range(ctx, 0, 1<<30, func(turn *Turn) error { shown++; return printable(turn) })
				},
				func() error { return trace.Tail(ctx, 3, func(turn *Turn) error { return printable(turn) }) },
				func() error { o, _, err := trace.Overview(ctx); return errors.Join(err, printable(o)) },
				func() error { i, err := trace.Init(ctx); return errors.Join(err, printable(i.InitEvent)) },
				func() error { s, _, err := trace.Stats(ctx); return errors.Join(err, printable(s)) },
				func() error { _, _, err := trace.ByTool(ctx); return err },
				func() error { c, _, err := trace.Cost(ctx); return errors.Join(err, printable(c)) },
				func() error { return trace.Calls(ctx, func(c *Call) error { return printable(c) }) },
				func() error { return trace.Commands(ctx, nil, func(Command) error { return nil }) },
				func() error { _, err := trace.Paths(ctx, ""); return err },
				func() error {
					return trace.Search(ctx, Search{Pattern: "a.*b|torn", Context: 1}, func(*Hit) error { return nil })
				},
				func() error { _, err := trace.Validate(ctx, func(Finding) error { return nil }); return err },
				func() error { _, err := trace.Messages(ctx); return err },
				func() error { _, err := Align(ctx, trace, trace); return err },
				func() error { return trace.ExportMarkdown(ctx, io.Discard) },
				func() error { return trace.ExportOTLP(ctx, io.Discard) },
				func() error { return trace.ExportDocument(ctx, io.Discard) },
			} {
				if err := ask(); err != nil {
					t.Fatal(err)
				}
			}
			if trace.doc == nil && shown != n {
				t.Errorf("%d turns were shown, %d counted", shown, n)
			}
		}
	})
}
