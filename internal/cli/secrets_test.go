package cli_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/model/scripted"
)

// TestNoSecretReachesAFileOrStream plants forty secrets in every place of a run that can carry
// text, in every encoding, and looks at everything that was written: the trace, standard output,
// standard error and the replay of the trace.
func TestNoSecretReachesAFileOrStream(t *testing.T) {
	t.Parallel()
	var environ, names, secrets []string
	for i := range 40 {
		name := fmt.Sprintf("PLANTED_%02d", i)
		secret := fmt.Sprintf(`p%dlanted-"secret\%s/%d!`, i, strings.Repeat("x", i%7), 1000+i)
		names, secrets = append(names, name), append(secrets, secret)
		environ = append(environ, name+"="+secret)
	}
	environ = append(environ, "LIBHARNESS_REDACTION_ENV_VARS="+strings.Join(names, ","), "PATH="+os.Getenv("PATH"))

	model := httptest.NewServer(scripted.NewServer(map[string]*scripted.Script{"": tellingScript(t, secrets)},
		scripted.Options{}))
	defer model.Close()
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	con := &console.Console{
		Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Environ: environ, Dir: dir,
		Version: "test",
	}
	args := []string{
		"fit-harness", "run", "--agent", "builtin", "--model-url", model.URL, "--task-text", "keep " + secrets[0],
		"--cwd", dir,
		"--output", "trace.ndjson", "--max-turns", "100",
	}
	code := cli.Run(context.Background(), args, con)
	trace, err := os.ReadFile(filepath.Join(dir, "trace.ndjson"))
	if err != nil {
		t.Fatalf("exit %d: %v\n%s", code, err, stderr.String())
	}
	var replayed bytes.Buffer
	cli.Run(context.Background(), []string{"fit-harness", "output"},
		&console.Console{
			Stdin: bytes.NewReader(trace), Stdout: &replayed, Stderr: &stderr,
			Environ: []string{"PATH=" + os.Getenv("PATH")},
		})
	cli.Run(context.Background(), []string{"fit-harness", "run", "--task-file", secrets[1]}, con)

	for where, text := range map[string]string{
		"trace": string(trace), "stdout": stdout.String(),
		"stderr": stderr.String(), "document": replayed.String(),
	} {
		t.Run(where, func(t *testing.T) {
			for i, secret := range secrets {
				for encoding, form := range leaks(secret) {
					if strings.Contains(text, form) {
						t.Errorf("%s holds secret %d, %s: %q", where, i, encoding, form)
					}
				}
			}
		})
	}
	for line := range bytes.Lines(trace) {
		if !json.Valid(line) {
			t.Errorf("redaction broke a line: %s", line)
		}
	}
	if !bytes.Contains(trace, []byte("[REDACTED:env:PLANTED_39]")) ||
		!bytes.Contains(trace, []byte(`"type":"summary"`)) {
		t.Errorf("exit %d; the trace is not what the test expects:\n%.2000s", code, trace)
	}
}

// TestNoCredentialOfAnAgentIsToldOn sets every variable that an agent takes its credentials from to
// a value that looks like nothing, and looks at the paths on which text leaves without a trace: the
// line about a mistake, and the callback to a bridge.
func TestNoCredentialOfAnAgentIsToldOn(t *testing.T) {
	t.Parallel()
	var told bytes.Buffer
	bridge := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = told.ReadFrom(r.Body) // what is missing of it is missed below
	}))
	defer bridge.Close()
	names := map[string]bool{}
	for _, a := range catalog.Default().All() {
		for _, name := range a.Info().Credentials {
			names[name] = true
		}
	}
	for name := range names {
		t.Run(name, func(t *testing.T) {
			told.Reset()
			const value = "looks like nothing special"
			dir := t.TempDir()
			summary := `{"source":"orchestrator","seq":0,"event":{"type":"summary","verdict":"success","summary":"It is ` + value + `."}}` + "\n"
			if err := os.WriteFile(filepath.Join(dir, "trace.ndjson"), []byte(summary), 0o600); err != nil {
				t.Fatal(err)
			}
			var stderr bytes.Buffer
			con := &console.Console{
				Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &stderr,
				Environ: []string{name + "=" + value}, Dir: dir, Version: "test",
			}
			if code := cli.Run(t.Context(),
				[]string{
					"fit-harness", "callback", "--trace-file", "trace.ndjson", "--callback-url", bridge.URL,
					"--correlation-id", "7",
				}, con); code != 0 {
				t.Fatalf("exit %d: %s", code, stderr.String())
			}
			cli.Run(t.Context(), []string{"fit-trace", value}, con)
			for where, text := range map[string]string{"the bridge": told.String(), "the line": stderr.String()} {
				if strings.Contains(text, value) || !strings.Contains(text, "[REDACTED:env:"+name+"]") {
					t.Errorf("%s was told %s", where, text)
				}
			}
		})
	}
}

// encodings are the forms in which a secret is planted.
func encodings(secret string) map[string]string {
	quoted, _ := json.Marshal(secret)
	return map[string]string{
		"raw":         secret,
		"json":        string(quoted[1 : len(quoted)-1]),
		"base64":      base64.StdEncoding.EncodeToString([]byte(secret)),
		"base64 at 1": base64.StdEncoding.EncodeToString([]byte("x" + secret)),
		"base64 url":  base64.RawURLEncoding.EncodeToString([]byte(secret)),
		"hex":         hex.EncodeToString([]byte(secret)),
		"percent":     url.QueryEscape(secret),
	}
}

// leaks are the pieces of those forms that must not be found anywhere.
func leaks(secret string) map[string]string {
	forms := encodings(secret)
	for name, form := range forms {
		if strings.HasPrefix(name, "base64") {
			forms[name] = form[4:20] // without the characters that depend on what stands beside the secret
		}
	}
	return forms
}

// tellingScript is a model that gives everything away: in its words, its thoughts, the names and
// values of its arguments, and through a shell.
func tellingScript(t *testing.T, secrets []string) *scripted.Script {
	t.Helper()
	var turns []map[string]any
	for _, secret := range secrets {
		all := []string{secret}
		for _, form := range encodings(secret) {
			all = append(all, form)
		}
		text := strings.Join(all, " and ")
		turns = append(turns, map[string]any{
			"text": "I know " + text, "thinking": "I think of " + text,
			"calls": []map[string]any{
				{"bash": "printf %s '" + strings.ReplaceAll(text, "'", `'\''`) + "'; printf %s '" + secret +
					"' >&2; exit 3"},
				{"tool": "Unknown " + text, "input": map[string]any{secret: map[string]any{"deep": []string{text}}}},
				{"write": "note.txt", "content": text},
				{"read": "note.txt"},
			},
		})
	}
	turns = append(turns, map[string]any{"text": "The last word is " + secrets[3]})
	raw, err := json.Marshal(map[string]any{"turns": turns})
	if err != nil {
		t.Fatal(err)
	}
	script, err := scripted.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return script
}
