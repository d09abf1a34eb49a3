package scan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/trace"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const prompt = `{"type":"user","message":{"content":[{"type":"text","text":"Fix it"}]}}`

// scanAll reads a stream and returns its lines in order: the bytes of events, and the reasons of
// problems.
func scanAll(t testing.TB, in io.Reader, limit int64) (lines []string) {
	t.Helper()
	err := Parallel(context.Background(), NewBlocks(in, limit), nil, func(b *Batch) error {
		for i := range b.Events {
			lines = append(lines, string(b.Events[i].Raw))
		}
		for _, p := range b.Problems {
			lines = append(lines, "problem: "+p.Reason)
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
		for i := range rapid.IntRange(0, testenv.Size(200, 40)).Draw(rt, "lines") {
			size := rapid.SampledFrom([]int{0, 10, 1000, 70000, blockSize - 20, blockSize + 7}).Draw(rt, "size")
			if size > 100000 && i > testenv.Size(3, 0) {
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
	return io.LimitReader(&repeater{text: bytes.Repeat([]byte(s), 1+64<<10/len(s))}, n)
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
	testenv.MuchData(t)
	in := io.MultiReader(strings.NewReader(`{"a":1}`+"\n"+`{"b":"`), repeated("x", 200<<20),
		strings.NewReader("\"}\n"+`{"c":1}`+"\n"))
	got := scanAll(t, in, -1)
	want := []string{`{"a":1}`, fmt.Sprintf("problem: longer than %d bytes", trace.MaxLine), `{"c":1}`}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("lines %.200v, want %v", got, want)
	}
}

func TestALineOfTheLongestAllowedSizeIsRead(t *testing.T) {
	testenv.MuchData(t)
	pad := int64(trace.MaxLine - len(`{"b":""}`))
	got := scanAll(t, io.MultiReader(strings.NewReader(`{"b":"`), repeated("x", pad), strings.NewReader("\"}\n")), -1)
	if len(got) != 1 || len(got[0]) != trace.MaxLine {
		t.Errorf("%d lines, the first of %d bytes", len(got), len(got[0]))
	}
}

func TestMemoryStaysFlat(t *testing.T) {
	testenv.MuchData(t)
	line := `{"type":"user","message":{"content":"` + strings.Repeat("x", 1<<20-100) + `"}}` + "\n"
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	most := uint64(0)
	err := Parallel(context.Background(), NewBlocks(repeated(line, 300*int64(len(line))), -1),
		nil,
		func(*Batch) error {
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapInuse)
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if grown := int64(most) - int64(before.HeapInuse); grown > 80<<20 {
		t.Errorf("lines of 1 MiB took %d MB of memory", grown>>20)
	}
}

func TestAFileThatShrinksIsReadAsFarAsItGoes(t *testing.T) {
	got := scanAll(t, strings.NewReader("{\"a\":1}\n"), 1<<20)
	if len(got) != 1 {
		t.Errorf("lines %v", got)
	}
}

func TestAnErrorOfTheInputIsReported(t *testing.T) {
	broken := errors.New("the disk is gone")
	err := Parallel(context.Background(),
		NewBlocks(io.MultiReader(strings.NewReader(prompt+"\n"), iotest.ErrReader(broken)),
			-1), nil, func(*Batch) error { return nil })
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestACancelledQuestionEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	err := Parallel(ctx, NewBlocks(repeated(prompt+"\n", 1<<40), -1), nil,
		func(*Batch) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
