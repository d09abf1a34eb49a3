package tracecli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cli/console"
)

// fails runs a verb that must print nothing but one line of complaint, and returns its exit code.
func fails(t *testing.T, stdin string, args ...string) (code int, complaint string) {
	t.Helper()
	var out, errs bytes.Buffer
	con := &console.Console{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs}
	code = run(con, args)
	if out.Len() > 0 {
		t.Errorf("fit-trace %s printed %q", strings.Join(args, " "), out.String())
	}
	return code, errs.String()
}

// TestNothingIsNotAnAnswer asks every verb about inputs that hold no trace.
func TestNothingIsNotAnAnswer(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"empty.ndjson": "", "blank.ndjson": "\n \n", "prose.txt": "Dear reader,\nnothing to see.\n",
		"package.json": `{"type":"module","name":"x","version":"1.0.0"}` + "\n", "list.json": "[1,2,3]\n", "other.ndjson": `{"a":1}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, args := range append(
				questions(path, filepath.Join(dir, "out")),
				[]string{"stats", "--summary", path},
				[]string{"stats", "--by-tool", path},
				[]string{"overview", "--format", "json", path},
				[]string{"count", "--format", "ndjson", path},
				[]string{"export", "--to", "otlp", path},
				[]string{"export", "--to", "document", path},
				[]string{"export", "--to", "html", path},
			) {
				if slices.Contains([]string{"validate", "cost", "assert"}, args[0]) {
					continue // the first two are below, and assert is about any file
				}
				code, complaint := fails(t, "", args...)
				if code != console.ExitUsage || !strings.Contains(complaint, name) {
					t.Errorf("%s %s: exit code %d, %q", strings.Join(args, " "), name, code, complaint)
				}
			}
			var out, errs bytes.Buffer
			if code := run(&console.Console{Stdout: &out, Stderr: &errs}, []string{"validate", path}); code == 0 {
				t.Errorf("validate %s: exit code 0, %s", name, errs.String())
			}
			if code, complaint := fails(t, content, "overview", "-"); code != console.ExitUsage {
				t.Errorf("overview of %s on standard input: exit code %d, %q", name, code, complaint)
			}
		})
	}
	// a workflow asks for the cost of a session that never started
	if code, complaint := fails(t, "", "cost", filepath.Join(dir, "empty.ndjson")); code != 0 || complaint == "" {
		t.Errorf("cost of an empty file: exit code %d, %q", code, complaint)
	}
	if code, _ := fails(t, "", "cost", filepath.Join(dir, "prose.txt")); code != console.ExitUsage {
		t.Errorf("cost of prose: exit code %d", code)
	}
}

func TestAnEntryThatIsNotThere(t *testing.T) {
	sample := filepath.Join("..", "..", "query", "testdata", "sample.ndjson")
	for _, index := range []string{"999", "7"} {
		if code, complaint := fails(t, "", "turn", sample, index); code != console.ExitUsage ||
			!strings.Contains(complaint, "no entry "+index) {
			t.Errorf("turn %s: exit code %d, %q", index, code, complaint)
		}
	}
	if code, complaint := fails(t, "", "turn", "--format", "json", sample, "--", "-1"); code != console.ExitUsage {
		t.Errorf("turn -1: exit code %d, %q", code, complaint)
	}
}

// TestOneSideOfAComparisonMayBeEmpty: an agent that did nothing is worth a comparison.
func TestOneSideOfAComparisonMayBeEmpty(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "trace--case--bob.agent.ndjson")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := string(ask(t, "compare", filepath.Join("..", "..", "query", "testdata", "sample.ndjson"), empty))
	if !strings.Contains(got, "B: case / bob (empty)") {
		t.Errorf("got %s", got)
	}
}

// A trace that was cut off after a whole line answers as far as it goes, and says that it has no
// end. Questions that stop early do not look for one.
func TestATraceWithoutAnEndSaysSo(t *testing.T) {
	whole, err := os.ReadFile("../../../examples/traces/team.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n"))
	const complaint = "the session has no summary: it is still running or was cut off\n"
	for name, content := range map[string][]byte{
		"whole": whole, "no end": bytes.Join(lines[:len(lines)-1], nil), "half": bytes.Join(lines[:len(lines)/2], nil),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, verb := range []string{"overview", "stats", "cost", "timeline", "count", "tools"} {
				var out, errs bytes.Buffer
				code := run(&console.Console{Stdout: &out, Stderr: &errs}, []string{verb, path})
				said := strings.HasSuffix(errs.String(), complaint)
				if code != 0 || out.Len() == 0 || said != (name != "whole") {
					t.Errorf("%s of %s: %d, %q", verb, name, code, errs.String())
				}
			}
		})
	}
}
