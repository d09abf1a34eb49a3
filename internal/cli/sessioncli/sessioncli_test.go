package sessioncli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/sessioncli"
	"github.com/fit-eval/fit/session"
)

const stream = `{"type":"system","subtype":"init","session_id":"s-1","cwd":"/repo","model":"model-1","tools":["Bash"],"mcp_servers":[]}
{"type":"assistant","message":{"id":"m1","role":"assistant","model":"model-1","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"cat a.go"}}]},"timestamp":"2026-01-02T03:04:05.000Z"}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"package a"}]}}
{"type":"assistant","message":{"id":"m2","role":"assistant","model":"model-1","content":[{"type":"text","text":"Done \u001b[31mred."}]},"timestamp":"2026-01-02T03:04:06.000Z"}
{"type":"result","subtype":"success","is_error":false,"result":"Done.","usage":{"input_tokens":10,"output_tokens":5},"modelUsage":{"model-1":{"inputTokens":10,"outputTokens":5,"costUSD":0.01}}}
`

const secret = "wise-old-owl-1815"

// TestSecretsAreNotPrinted reads what an agent left on disk, which nobody has redacted, with the
// secret at every place around which a page cuts a text.
func TestSecretsAreNotPrinted(t *testing.T) {
	dir := t.TempDir()
	for _, before := range []int{0, 60, 70, 75, 80, 100, 110, 115, 120, 150, 190, 200, 490, 500} {
		said := strings.Repeat("x", before) + " " + secret + " and more of it"
		write(t, dir, "stream.jsonl", strings.ReplaceAll(stream, "Done", said))
		for _, args := range [][]string{
			{"show", "stream.jsonl"},
			{"show", "--format", "json", "stream.jsonl"},
			{"import", "stream.jsonl"},
			{"export", "--to", "atif", "stream.jsonl"},
		} {
			out, err := fit(t, dir, "", args...)
			if err != nil || strings.Contains(out, secret[:5]) {
				t.Errorf("%v with %d characters before it: %v\n%s", args, before, err, out)
			}
			if out, err = fit(t, dir, "", append(args, "--no-redact")...); err != nil ||
				before == 0 && !strings.Contains(out, secret) {
				t.Errorf("%v --no-redact: %v\n%s", args, err, out)
			}
		}
	}
	if _, err := fit(t, dir, "", "export", "--to", "atif", "--output", "out.json", "stream.jsonl"); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(filepath.Join(dir, "out.json"))
	if err != nil || strings.Contains(string(written), secret) {
		t.Errorf("%v: %s", err, written)
	}
}

// fit runs `fit session` in memory.
func fit(t *testing.T, dir, stdin string, args ...string) (stdout string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	con := &console.Console{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs, Dir: dir}
	secrets := func([]string) map[string]string { return map[string]string{"LOGIN": secret} }
	command := sessioncli.New(con, session.Dialects{session.StreamDialect("some-agent")}, secrets)
	command.SetArgs(args)
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetOut(&errs)
	command.SetErr(&errs)
	err = command.Execute()
	return out.String(), err
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestImportPrintsTheSessionAsJSON(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "stream.jsonl", stream)
	for name, args := range map[string][]string{
		"a file":         {"import", "stream.jsonl"},
		"standard input": {"import", "-"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := fit(t, dir, stream, args...)
			if err != nil {
				t.Fatal(err)
			}
			var s session.EnrichedSession
			if err := json.Unmarshal([]byte(out), &s); err != nil {
				t.Fatalf("%v in %s", err, out)
			}
			if s.SessionID != "s-1" || s.Agent != "some-agent" || s.Turns != 2 || s.Usage.InputTokens != 10 ||
				s.Outcome != session.OutcomeSuccess {
				t.Errorf("session: %+v", s)
			}
		})
	}
}

func TestATraceOfSeveralAgentsGivesAnArray(t *testing.T) {
	dir := t.TempDir()
	var lines []string
	for i, event := range strings.Split(strings.TrimSpace(stream), "\n") {
		for _, lane := range []string{"alice", "bob"} {
			lines = append(lines, `{"source":"`+lane+`","seq":`+string(rune('0'+i))+`,"ts":1767323045000,"event":`+
				event+`}`)
		}
	}
	write(t, dir, "trace.ndjson", strings.Join(lines, "\n"))
	out, err := fit(t, dir, "", "import", "trace.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	var sessions []session.EnrichedSession
	if err := json.Unmarshal([]byte(out), &sessions); err != nil {
		t.Fatal(err)
	}
	if len(sessions) != 2 || sessions[0].Turns != 2 || sessions[1].Events[0].Lane != "bob" {
		t.Errorf("%d sessions", len(sessions))
	}
}

func TestShowPrintsOneReadablePage(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "stream.jsonl", stream)
	out, err := fit(t, dir, "", "show", "stream.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"session  s-1", "ended    success · 2 turns", "$0.0100 reported", "first_file_read",
		"task_completion", "cat a.go",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the page lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Error("an escape sequence of the agent reached the terminal")
	}
}

func TestExportedSessionsCanBeImportedAgain(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "stream.jsonl", stream)
	before, err := fit(t, dir, "", "import", "stream.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fit(t, dir, "", "export", "stream.jsonl", "--to", "atif", "-o", "out.json"); err != nil {
		t.Fatal(err)
	}
	after, err := fit(t, dir, "", "import", "out.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the session changed on its way through ATIF (-before +after):\n%s", diff)
	}
	write(t, dir, "session.json", before)
	if shown, err := fit(t, dir, "", "show", "session.json"); err != nil || !strings.Contains(shown, "s-1") {
		t.Errorf("a stored session cannot be shown: %v\n%s", err, shown)
	}
}

func TestMistakesGetOneLineAndExitCode2(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "notes.txt", "hello\nworld\n")
	write(t, dir, "stream.jsonl", stream)
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no file":          {[]string{"show", "nothing.jsonl"}, "there is no file nothing.jsonl"},
		"no agent's file":  {[]string{"show", "notes.txt"}, "holds no events of an agent"},
		"a directory":      {[]string{"import", "."}, "is a directory"},
		"no path":          {[]string{"import"}, "name one file"},
		"unknown target":   {[]string{"export", "stream.jsonl", "--to", "xml"}, "use --to atif"},
		"broken document":  {[]string{"import", "broken.json"}, "not an ATIF document"},
		"missing a target": {[]string{"export", "stream.jsonl"}, "use --to atif"},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, dir, "broken.json", `{"schema_version":"ATIF-v1.7","steps":17}`)
			_, err := fit(t, dir, "", test.args...)
			if console.Code(err) != console.ExitUsage || !strings.Contains(err.Error(), test.want) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v with exit code %d, want %q with 2", err, console.Code(err), test.want)
			}
		})
	}
}
