package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/query"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// sample is a session of one agent, and document what it is as a structured document. The tests of
// package query ask both the same questions.
const (
	sample   = "../testdata/sample.ndjson"
	document = "../testdata/sample.json"
)

func open(t *testing.T, path string) *query.Trace {
	t.Helper()
	trace, err := query.Open(path, query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func TestADocumentIsTheWholeTraceOnOneLine(t *testing.T) {
	var got bytes.Buffer
	if err := Document(context.Background(), open(t, sample), &got); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(document, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("got %s\nwant %s", got.String(), want)
	}
	var again bytes.Buffer
	if err := Document(context.Background(), open(t, document), &again); err != nil || again.String() != got.String() {
		t.Errorf("a document became %s, %v", again.String(), err)
	}
	raw, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	piped, err := query.Open("-", query.Options{Stdin: bytes.NewReader(raw)})
	if err != nil {
		t.Fatal(err)
	}
	again.Reset()
	if err := Document(context.Background(), piped, &again); err != nil || again.String() != got.String() {
		t.Errorf("standard input became %s, %v", again.String(), err)
	}
}

// hostile opens the sample with an event that tries to become markup.
func hostile(t *testing.T) *query.Trace {
	t.Helper()
	raw, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "hostile.ndjson")
	event := `{"type":"assistant","message":{"content":[{"type":"text","text":"# Title\n<script>alert(1)</script>"},` +
		`{"type":"tool_use","id":"t5","name":"Bash","input":{"command":"echo '` + "```" + `'"}}]}}`
	if err := os.WriteFile(path, append(raw, event...), 0o600); err != nil {
		t.Fatal(err)
	}
	return open(t, path)
}

func TestAMarkdownPageHoldsWhatHappenedAndNoForeignMarkup(t *testing.T) {
	var page bytes.Buffer
	if err := Markdown(context.Background(), hostile(t), &page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# Trace ", "> Fix it", "**Read**", "> # Title\n> &lt;script>", "````json"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, page.String())
		}
	}
}

func TestSpansFormATree(t *testing.T) {
	byID, failed := map[string]bool{}, 0
	all := spansOf(t, hostile(t))
	for _, s := range all {
		byID[s.SpanID] = true
		if s.Status != nil && s.Status.Code == statusError {
			failed++
		}
		if len(s.TraceID) != 32 || len(s.SpanID) != 16 {
			t.Errorf("ids of %+v", s)
		}
	}
	for _, s := range all {
		if s.Parent != "" && !byID[s.Parent] {
			t.Errorf("span %s has an unknown parent", s.Name)
		}
	}
	if len(all) != 1+1+4+3 || failed != 1 {
		t.Errorf("%d spans, %d failed; want a session, a lane, 4 messages, 3 calls, one of them failed", len(all),
			failed)
	}
}

func spansOf(t *testing.T, trace *query.Trace) []otlpSpan {
	t.Helper()
	var spans bytes.Buffer
	if err := OTLP(context.Background(), trace, &spans); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		ResourceSpans []struct{ ScopeSpans []struct{ Spans []otlpSpan } }
	}
	if err := json.Unmarshal(spans.Bytes(), &doc); err != nil {
		t.Fatalf("%v in %s", err, spans.String())
	}
	return doc.ResourceSpans[0].ScopeSpans[0].Spans
}

// Models that number messages and calls give the same ids in every lane.
func TestSpansOfLanesThatShareIDsDiffer(t *testing.T) {
	const (
		task = `,"seq":0,"event":{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"1","name":"Task"}]}}}` + "\n"
		sub  = `,"seq":1,"event":{"type":"assistant","parent_tool_use_id":"1","message":{"content":[{"type":"tool_use","id":"2","name":"Bash"}]}}}` + "\n"
		a, b = `{"source":"a"`, `{"source":"b"`
	)
	path := filepath.Join(t.TempDir(), "trace.ndjson")
	lines := a + task + b + task + a + sub + b + sub
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	all := spansOf(t, open(t, path))
	byID, started := map[string]bool{}, map[string]int{}
	for _, s := range all {
		if byID[s.SpanID] {
			t.Errorf("%s has the id of another span", s.Name)
		}
		byID[s.SpanID] = true
		started[s.Parent]++
	}
	for _, s := range all {
		if s.Name == "execute_tool Task" && started[s.SpanID] != 2 {
			t.Errorf("%d spans below a task, want a message and a call", started[s.SpanID])
		}
	}
	if len(all) != 1+2+4+4 {
		t.Errorf("%d spans; want a session, 2 lanes, 4 messages, 4 calls", len(all))
	}
}

func FuzzExports(f *testing.F) {
	raw, err := os.ReadFile(sample)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"version":"1.2.0","turns":[{"index":0,"role":"assistant","content":[null,{"type":"tool_use"}]},null]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "trace.ndjson")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		trace := open(t, path)
		if err := Markdown(context.Background(), trace, io.Discard); errors.Is(err, query.ErrNothing) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		for _, write := range []func(context.Context, *query.Trace, io.Writer) error{OTLP, Document} {
			var out bytes.Buffer
			if err := write(context.Background(), trace, &out); err != nil {
				t.Fatal(err)
			}
			if !json.Valid(out.Bytes()) {
				t.Errorf("not JSON: %s", out.String())
			}
		}
	})
}
