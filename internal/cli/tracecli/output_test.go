package tracecli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cli/console"
)

// longTrace has so many turns that no buffer between two processes holds them.
func longTrace(t *testing.T, turns int) string {
	t.Helper()
	var text strings.Builder
	for i := range turns {
		fmt.Fprintf(&text, `{"type":"user","message":{"content":"turn %d %s"}}`+"\n", i, strings.Repeat("x", 100))
	}
	path := filepath.Join(t.TempDir(), "long.ndjson")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOutputToAPipeIsComplete(t *testing.T) {
	path := longTrace(t, 20000)
	for _, format := range []string{"text", "json", "ndjson"} {
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		code := make(chan int, 1)
		go func() {
			code <- run(&console.Console{Stdout: writer, Stderr: io.Discard},
				[]string{"filter", "--format", format, path})
			_ = writer.Close()
		}()
		all, err := io.ReadAll(reader)
		if err != nil || <-code != 0 {
			t.Fatalf("%s: %v", format, err)
		}
		if got := bytes.Count(all, []byte("turn ")); got != 20000 {
			t.Errorf("%s: %d turns arrived, want 20000", format, got)
		}
		if format == "json" && !json.Valid(all) {
			t.Error("what arrived is not JSON")
		}
	}
}

func TestAReaderThatHasSeenEnoughEndsItQuietly(t *testing.T) {
	path := longTrace(t, 50000)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run(&console.Console{Stdout: writer, Stderr: &errs}, []string{"filter", path})
		_ = writer.Close()
	}()
	if _, err := bufio.NewReader(reader).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-code; got != 0 || errs.Len() > 0 {
		t.Errorf("exit code %d: %s", got, errs.String())
	}
}

func TestAnswersAreTheSameEveryTime(t *testing.T) {
	path := longTrace(t, 3000)
	first := ask(t, "search", "--limit", "0", path, "turn [0-9]*7 ")
	for range 5 {
		if again := ask(t, "search", "--limit", "0", path, "turn [0-9]*7 "); !bytes.Equal(first, again) {
			t.Fatal("two answers to one question")
		}
	}
}

func TestThePagerIsThePersonsOwn(t *testing.T) {
	for environ, want := range map[string]string{"PAGER=more -d": "more", "PAGER=": "", "PAGER=cat": ""} {
		t.Run(environ, func(t *testing.T) {
			a := &app{con: &console.Console{Environ: []string{environ}}}
			if got, _ := a.pagerCommand(); got != want {
				t.Errorf("%s: pager %q, want %q", environ, got, want)
			}
		})
	}
	var out bytes.Buffer
	a := &app{con: &console.Console{Stdout: &out}}
	if sink, _ := a.pager(t.Context()); sink != &out {
		t.Error("no person looks, but there is a pager")
	}
}
