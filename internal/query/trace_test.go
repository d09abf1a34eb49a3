package query

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"github.com/fit-eval/fit/internal/query/internal/gentrace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAFileThatGrowsIsReadAsItWas(t *testing.T) {
	path := write(t, strings.Join(sample, "\n")+"\n")
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	trace := open(t, path, Options{})
	seen := 0
	info, err := trace.Walk(context.Background(), func(*Cursor) error {
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
		t.Run(name, func(t *testing.T) {
			if got := turnsOf(t, open(t, write(t, packed), Options{})); strings.Join(got, "\n") != strings.Join(want,
				"\n") {
				t.Errorf("%s: turns %v", name, got)
			}
			if got := turnsOf(t, open(t, "-", Options{Stdin: strings.NewReader(packed)})); strings.Join(got,
				"\n") != strings.Join(want, "\n") {
				t.Errorf("%s on standard input: turns %v", name, got)
			}
			calls := 0
			if err := open(t, write(t, packed), Options{}).ToolUses(context.Background(),
				func(*ToolUse) error { calls++; return nil }); err != nil || calls != 2 {
				t.Errorf("%s: %d calls, %v", name, calls, err)
			}
		})
	}
	cut := open(t, write(t, zipped.String()[:zipped.Len()-30]), Options{})
	if _, err := cut.Walk(context.Background(), nil); err != nil {
		t.Errorf("a packed file that was cut off: %v", err)
	}
}

// printable fails for what cannot be printed as JSON.
func printable(value any) error {
	raw, err := json.Marshal(value)
	if err == nil && !json.Valid(raw) {
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
	long := strings.Repeat("x", 64)
	f.Add([]byte(`{"type":"system","subtype":"init","tools":["` + long + `\q"],"x":"` + long + `\u12"}` + "\n" +
		`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"Bash","input":{"command":"` +
		long + `\x"}},{"type":"thinking","thinking":"` + long + `\q"},{"type":"odd","y":"` + long + `\q"}]}}` + "\n" +
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":[{"text":"` + long +
		`\q"}]}]}}` + "\n" +
		`{"type":"result","modelUsage":{"m":{"note":"` + long + `\q"}}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		ctx := context.Background()
		path := write(t, string(content))
		whole := open(t, path, Options{})
		n, err := whole.Count(ctx)
		if err != nil {
			t.Skip("not readable as a whole: " + err.Error())
		}
		shown := 0
		for _, trace := range []*Trace{open(t, path, Options{}), open(t, path, Options{Known: whole})} {
			shown = 0
			for _, ask := range []func() error{
				func() error {
					return trace.Range(ctx, 0, 1<<30, func(entry *Entry) error { shown++; return printable(entry) })
				},
				func() error { return trace.Tail(ctx, 3, func(entry *Entry) error { return printable(entry) }) },
				func() error { o, _, err := trace.Overview(ctx); return errors.Join(err, printable(o)) },
				func() error { i, err := trace.Init(ctx); return errors.Join(err, printable(i.InitEvent)) },
				func() error { s, _, err := trace.Stats(ctx); return errors.Join(err, printable(s)) },
				func() error { _, err := trace.ByTool(ctx); return err },
				func() error { c, err := trace.Cost(ctx); return errors.Join(err, printable(c)) },
				func() error { return trace.ToolUses(ctx, func(c *ToolUse) error { return printable(c) }) },
				func() error { return trace.Commands(ctx, nil, func(Command) error { return nil }) },
				func() error { _, err := trace.Paths(ctx, ""); return err },
				func() error {
					return trace.Search(ctx, Search{Pattern: "a.*b|torn", Context: 1}, func(*Hit) error { return nil })
				},
				func() error { _, err := trace.Validate(ctx, func(Finding) error { return nil }); return err },
				func() error { _, err := trace.Messages(ctx); return err },
				func() error { _, err := Align(ctx, trace, trace); return err },
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
