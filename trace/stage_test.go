package trace

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
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
		if seq, err := w.Stage("a", JSON(fmt.Sprintf(`{"n":%d}`, i))); err != nil || seq != int64(i) {
			t.Fatalf("seq %d, %v", seq, err)
		}
	}
	if out.calls != 0 {
		t.Error("staging wrote something")
	}
	if _, err := w.Emit("b", JSON(`{"n":3}`)); err != nil {
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
	if _, err := w.Stage("a", JSON(`{"n":4}`)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil || strings.Count(out.String(), "\n") != 5 {
		t.Errorf("after Close: %v, %s", err, out.String())
	}
	if _, err := w.Stage("a", JSON(`{}`)); !errors.Is(err, ErrClosed) {
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
				if _, err := w.Stage(fmt.Sprint(i), JSON(`{"type":"x"}`)); err != nil {
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

func TestTimeOfStagedLinesDoesNotRunBackwards(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, Config{})
	now := time.UnixMilli(1_767_225_600_000)
	for _, at := range []time.Time{
		now, now.Add(-7 * time.Millisecond), now.Add(3 * time.Millisecond),
		now.Add(-time.Hour),
	} {
		if _, err := w.StageAt("a", at, JSON(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var got []int64
	for reader := NewReader(&out); len(got) < 4; {
		line, err := reader.Next()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, line.Ts-now.UnixMilli())
	}
	// a clock that was set back is believed
	if want := []int64{0, 0, 3, -time.Hour.Milliseconds()}; !slices.Equal(got, want) {
		t.Errorf("times %v, want %v", got, want)
	}
}

func TestClockOfTheWriterGoesFirst(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, Config{Now: func() int64 { return 42 }})
	if _, err := w.StageAt("a", time.UnixMilli(7), JSON(`{}`)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil || !strings.Contains(out.String(), `"ts":42,`) {
		t.Errorf("%v, %s", err, out.String())
	}
}
