package trace_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/trace"
)

// Every event becomes one line, without the secrets that the redactor knows.
func ExampleWriter() {
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Config{
		Redactor: redact.New(redact.Config{Extra: map[string]string{"DB_PASSWORD": "correct horse"}}),
		Now:      func() int64 { return 1767225600000 },
	})
	_, _ = w.EmitValue(trace.Orchestrator, trace.SessionStart{Type: trace.TypeSessionStart, Mode: "run"})
	_, _ = w.Emit("agent", []byte(`{"text":"correct horse"}`))
	_, _ = w.Emit("agent", []byte("not JSON"))
	if err := w.Close(); err != nil {
		fmt.Println(err)
	}
	fmt.Print(out.String())
	// Output:
	// {"source":"orchestrator","seq":0,"ts":1767225600000,"event":{"type":"session_start","mode":"run"}}
	// {"source":"agent","seq":1,"ts":1767225600000,"event":{"text":"[REDACTED:env:DB_PASSWORD]"}}
	// {"source":"agent","seq":2,"ts":1767225600000,"event":{"type":"raw","text":"not JSON"}}
}

// A bad line is a record with a problem, not the end of the file.
func ExampleReader() {
	in := bytes.NewBufferString(`{"source":"agent","seq":0,"event":{"type":"assistant"}}` + "\nbroken\n" +
		`{"type":"result","subtype":"success"}` + "\n")
	reader := trace.NewReader(in)
	for {
		line, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		switch {
		case line.Problem != nil:
			fmt.Println(line.Problem)
		case line.Bare:
			fmt.Printf("line %d is an event by itself: %s\n", line.Number, line.Event)
		default:
			fmt.Printf("line %d of %s: %s\n", line.Number, line.Source, line.Event)
		}
	}
	// Output:
	// line 1 of agent: {"type":"assistant"}
	// line 2: not a JSON object
	// line 3 is an event by itself: {"type":"result","subtype":"success"}
}
