package trace

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// countingWriter counts the calls, each of which must bring whole lines.
type countingWriter struct {
	bytes.Buffer
	calls int
	torn  bool
}

func (w *countingWriter) Write(p []byte) (int, error) {
	w.calls++
	w.torn = w.torn || !bytes.HasSuffix(p, []byte("\n"))
	return w.Buffer.Write(p)
}

func TestStagedLinesAreWrittenTogetherInOrder(t *testing.T) {
	var out countingWriter
	var seen []string
	w := NewWriter(&out, Config{
		OnLine: func(e Envelope) { seen = append(seen, fmt.Sprint(e.Seq, string(e.Event))) },
		Now:    func() int64 { return 5 },
	})
	for i := range 3 {
		if seq, err := w.Stage("a", fmt.Appendf(nil, `{"n":%d}`, i)); err != nil || seq != int64(i) {
			t.Fatalf("seq %d, %v", seq, err)
		}
	}
	if out.calls != 0 {
		t.Error("staging wrote something")
	}
	if _, err := w.Emit("b", []byte(`{"n":3}`)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Flush(), w.Flush()); err != nil {
		t.Fatal(err)
	}
	if out.calls != 1 || out.torn {
		t.Errorf("%d writes, torn %v", out.calls, out.torn)
	}
	if got := strings.Join(seen, " "); got != `0{"n":0} 1{"n":1} 2{"n":2} 3{"n":3}` {
		t.Errorf("seen %s", got)
	}
	if _, err := w.Stage("a", []byte(`{"n":4}`)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil || strings.Count(out.String(), "\n") != 5 {
		t.Errorf("after Close: %v, %s", err, out.String())
	}
	if _, err := w.Stage("a", []byte(`{}`)); !errors.Is(err, ErrClosed) {
		t.Errorf("staged after Close: %v", err)
	}
}

func TestFlushedLinesAreThereWhoeverWroteThem(t *testing.T) {
	var out countingWriter
	w := NewWriter(&out, Config{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 200 {
				if _, err := w.Stage(fmt.Sprint(i), []byte(`{"type":"x"}`)); err != nil {
					t.Error(err)
				}
				if err := w.Flush(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	reader := NewReader(&out.Buffer)
	for want := range int64(8 * 200) {
		line, err := reader.Next()
		if err != nil || line.Seq != want {
			t.Fatalf("line %d: %+v, %v", want, line, err)
		}
	}
}

func TestClockOfTheWriterGoesFirst(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, Config{Now: func() int64 { return 42 }})
	if _, err := w.Stage("a", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil || !strings.Contains(out.String(), `"ts":42,`) {
		t.Errorf("%v, %s", err, out.String())
	}
}
