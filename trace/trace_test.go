package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fit-eval/fit/redact"
)

func fixedClock() int64 { return 1767225600000 }

func readAll(t *testing.T, r io.Reader) []Line {
	t.Helper()
	var lines []Line
	reader := NewReader(r)
	for {
		line, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		line.Event = bytes.Clone(line.Event)
		line.Raw = bytes.Clone(line.Raw)
		lines = append(lines, line)
	}
}

func TestAnEventIsPassedOnByteForByte(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, Config{Now: fixedClock})
	event := `{"b": 1.50, "a":"\u00e9 <&>",  "type":"unheard_of"}`
	if _, err := w.Emit("agent", []byte(event)); err != nil {
		t.Fatal(err)
	}
	want := `{"source":"agent","seq":0,"ts":1767225600000,"event":` + event + "}\n"
	if out.String() != want {
		t.Errorf("line = %s, want %s", out.String(), want)
	}
}

func TestWhatIsNoEventBecomesOne(t *testing.T) {
	for input, want := range map[string]string{
		"plain words":   `{"type":"raw","text":"plain words"}`,
		`{"cut":`:       `{"type":"raw","text":"{\"cut\":"}`,
		`[1,2]`:         `{"type":"raw","text":"[1,2]"}`,
		"null":          `{"type":"raw","text":"null"}`,
		"a\x00b\x1b[1m": `{"type":"raw","text":"a\u0000b\u001b[1m"}`,
		"":              `{"type":"raw","text":""}`,
		"{\n \"a\": 1}": `{"a":1}`,
	} {
		t.Run(input, func(t *testing.T) {
			var out bytes.Buffer
			w := NewWriter(&out, Config{Now: fixedClock})
			if _, err := w.Emit("agent", []byte(input)); err != nil {
				t.Fatal(err)
			}
			lines := readAll(t, &out)
			if len(lines) != 1 || string(lines[0].Event) != want {
				t.Errorf("event of %q = %s, want %s", input, lines[0].Event, want)
			}
		})
	}
}

func TestManyWritersMakeOneSequenceWithoutGaps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.ndjson")
	var seen int64
	w, err := Open(path, Config{OnLine: func(env Envelope) {
		if env.Seq != seen {
			t.Errorf("OnLine saw seq %d, want %d", env.Seq, seen)
		}
		seen++
	}})
	if err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for lane := range 8 {
		writers.Go(func() {
			for i := range 200 {
				event := fmt.Appendf(nil, `{"type":"x","i":%d,"pad":%q}`, i, strings.Repeat("y", i*7))
				if _, err := w.Emit(fmt.Sprintf("lane-%d", lane), event); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	next := map[string]int{}
	for i, line := range readAll(t, file) {
		if line.Problem != nil || line.Seq != int64(i) {
			t.Fatalf("line %d: seq %d, problem %v", i, line.Seq, line.Problem)
		}
		var event struct{ I int }
		if err := json.Unmarshal(line.Event, &event); err != nil || event.I != next[line.Source] {
			t.Fatalf("line %d: lane %s is at %d, want %d (%v)", i, line.Source, event.I, next[line.Source], err)
		}
		next[line.Source]++
	}
}

func TestASecondWriterIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.ndjson")
	first, err := Open(path, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := Open(path, Config{}); !errors.Is(err, ErrLocked) {
		t.Errorf("second writer got %v, want ErrLocked", err)
	}
}

func TestTheNextWriterGoesOnAfterTheLastLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.ndjson")
	for range 3 {
		w, err := Open(path, Config{Now: fixedClock})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Emit("agent", []byte(`{"type":"x"}`)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := readAll(t, bytes.NewReader(content))
	if len(lines) != 3 || lines[2].Seq != 2 {
		t.Errorf("lines: %+v", lines)
	}
}

// TestATornTailIsRecovered cuts a trace at every byte: nothing that was whole is lost, nothing is
// truncated, and the sequence goes on.
func TestATornTailIsRecovered(t *testing.T) {
	var whole bytes.Buffer
	w := NewWriter(&whole, Config{Now: fixedClock})
	for i := range 3 {
		if _, err := w.Emit("agent", fmt.Appendf(nil, `{"type":"x","i":%d,"deep":{"a":{}}}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	for cut := range whole.Len() + 1 {
		path := filepath.Join(dir, fmt.Sprint(cut))
		if err := os.WriteFile(path, whole.Bytes()[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		next, err := Open(path, Config{Now: fixedClock})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := next.Emit("agent", []byte(`{"type":"after"}`)); err != nil {
			t.Fatal(err)
		}
		if err := next.Close(); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(content, whole.Bytes()[:cut]) {
			t.Fatalf("cut at %d: bytes were lost", cut)
		}
		checkRecovered(t, cut, whole.Bytes()[:cut], readAll(t, bytes.NewReader(content)))
	}
}

func checkRecovered(t *testing.T, cut int, before []byte, lines []Line) {
	t.Helper()
	intact := 0
	for _, line := range bytes.SplitAfter(before, []byte("\n")) {
		if json.Valid(line) {
			intact++
		}
	}
	var seq int64
	good := 0
	for _, line := range lines {
		if line.Problem != nil {
			continue
		}
		if !json.Valid(line.Event) {
			continue // a torn line that happens to look closed; whoever decodes it finds out
		}
		if line.Seq != seq {
			t.Fatalf("cut at %d: seq %d, want %d", cut, line.Seq, seq)
		}
		seq++
		good++
	}
	torn := len(before) > 0 && before[len(before)-1] != '\n'
	want := intact + 1
	if torn {
		want++ // the recovered event
		recovered := lines[len(lines)-2]
		if !bytes.Contains(recovered.Event, []byte(`"type":"recovered"`)) {
			t.Fatalf("cut at %d: no recovered event but %s", cut, recovered.Event)
		}
	}
	if good != want {
		t.Fatalf("cut at %d: %d good lines, want %d", cut, good, want)
	}
}

func TestReaderTakesWhatItIsGiven(t *testing.T) {
	long := `{"source":"a","seq":0,"event":{"type":"x","text":"` + strings.Repeat("z", 400<<10) + `"}}`
	input := "\xef\xbb\xbf" + `{"source":"a","seq":0,"event":{"type":"old"}}` + "\r\n" + // no ts, CRLF, BOM
		"\n" +
		`{"type":"assistant","source":"not an envelope"}` + "\n" + // bare
		`{"event":{"type":"x"},"seq":5,"source":"b","ts":7}` + "\n" + // another order
		"null\n" + "{broken\n" + "\x00\x00\n" + long + "\n" +
		`{"source":"a","seq":9,"event":{"type":"to`
	lines := readAll(t, strings.NewReader(input))
	type summary struct {
		Source  string
		Seq     int64
		Bare    bool
		Problem bool
		Torn    bool
	}
	want := []summary{
		{Source: "a"},
		{Bare: true},
		{Source: "b", Seq: 5},
		{Problem: true},
		{Problem: true},
		{Problem: true},
		{Source: "a"},
		{Problem: true, Torn: true},
	}
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d", len(lines), len(want))
	}
	for i, line := range lines {
		got := summary{line.Source, line.Seq, line.Bare, line.Problem != nil, line.Torn}
		if got != want[i] {
			t.Errorf("line %d = %+v, want %+v", line.Number, got, want[i])
		}
	}
	if lines[2].Number != 4 || string(lines[2].Event) != `{"type":"x"}` || lines[2].Ts != 7 {
		t.Errorf("line 4 = %+v", lines[2])
	}
}

// endless is a line without end, so that the test needs no 65 MiB file.
type endless struct{ left int }

var manyX = strings.Repeat("x", 64<<10)

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), e.left)], manyX)
	e.left -= n
	return n, nil
}

func TestAMonstrousLineIsSkippedAndTheNextOneRead(t *testing.T) {
	after := "\n" + `{"source":"a","seq":1,"event":{"type":"x"}}` + "\n"
	lines := readAll(t, io.MultiReader(&endless{MaxLine + 100}, strings.NewReader(after)))
	if len(lines) != 2 || lines[0].Problem == nil || lines[1].Seq != 1 {
		t.Fatalf("lines = %d", len(lines))
	}
	if want := int64(MaxLine + 101); lines[1].Offset != want {
		t.Errorf("offset of the second line = %d, want %d", lines[1].Offset, want)
	}
}

func TestSecretsStayOutOfTheTrace(t *testing.T) {
	var out bytes.Buffer
	redactor := redact.New(redact.Config{Environ: []string{"GH_TOKEN=hunter2-hunter2"}})
	w := NewWriter(&out, Config{Redactor: redactor, Now: fixedClock})
	if _, err := w.Emit("hunter2-hunter2", []byte(`{"type":"x","hunter2-hunter2":"say hunter2-hunter2"}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.EmitValue(Orchestrator, Summary{Type: TypeSummary, Summary: "hunter2-hunter2"}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "hunter2") || strings.Count(out.String(), "[REDACTED:env:GH_TOKEN]") != 4 {
		t.Errorf("trace: %s", out.String())
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestAFullDiskIsToldAndRemembered(t *testing.T) {
	w := NewWriter(failingWriter{}, Config{})
	for range 2 {
		if _, err := w.Emit("a", []byte(`{}`)); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("Emit = %v", err)
		}
	}
	if err := w.Close(); err == nil {
		t.Error("Close forgot the error")
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add([]byte(`{"source":"a","seq":1,"ts":2,"event":{"type":"x"}}`))
	f.Add([]byte(`{"type":"bare"}`))
	f.Add([]byte(`{"source":"a","seq":1,"event":{}}`))
	f.Add([]byte(`{"event":{},"source":"a","seq":"no number"}`))
	f.Add([]byte("\x00"))
	f.Fuzz(func(t *testing.T, line []byte) {
		env, err := ParseLine(line)
		if err != nil {
			return
		}
		if len(env.Event) == 0 {
			t.Errorf("no error and no event for %q", line)
		}
		if json.Valid(bytes.TrimSpace(line)) && !env.Bare && !json.Valid(env.Event) &&
			!bytes.Contains(line, []byte(`"event":{`)) {
			t.Errorf("a valid line has an invalid event: %q", line)
		}
	})
}

func BenchmarkEmit(b *testing.B) {
	event := []byte(`{"type":"assistant","message":{"content":[{"type":"text","text":"` + strings.Repeat("words ", 50) +
		`"}]}}`)
	w := NewWriter(io.Discard, Config{})
	b.SetBytes(int64(len(event)))
	for b.Loop() {
		if _, err := w.Emit("agent", event); err != nil {
			b.Fatal(err)
		}
	}
}
