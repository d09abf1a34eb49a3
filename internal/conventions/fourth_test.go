package conventions

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

// fourthProgram tells its version, and answers a prompt with it and with its own key, as only a
// careless program would.
const fourthProgram = `#!/bin/sh
if [ "$1" = --version ]; then echo fourth 4.0.1; exit; fi
read -r prompt
echo '{"fourth":"hello","id":"f-1"}'
echo '{"fourth":"says","text":"I was asked to '"$prompt"' with '"$FOURTH_KEY"'"}'
echo '{"fourth":"end","text":"done"}'
`

// withFourthAgent builds fit with one more agent: a new folder, and a line in the catalog with the
// import it needs. Nothing else differs from the repository.
func withFourthAgent(t *testing.T) (program string) {
	t.Helper()
	testenv.NeedTool(t, "go")
	root, dir := repository(t), t.TempDir()
	catalogFile := filepath.Join(root, registryPackage, "catalog.go")
	source, err := os.ReadFile(catalogFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, insert := range []struct{ before, line string }{
		{"\t\"" + module + "/internal/agent/builtin\"\n", "\t\"" + module + "/internal/agent/fourth\"\n"},
		{"\t\tbuiltin.New(),\n", "\t\tfourth.New(),\n"},
	} {
		if bytes.Count(source, []byte(insert.before)) != 1 {
			t.Fatalf("%s has no line %q", catalogFile, insert.before)
		}
		source = bytes.Replace(source, []byte(insert.before), []byte(insert.line+insert.before), 1)
	}
	changed := filepath.Join(dir, "catalog.go")
	writeFile(t, changed, string(source), 0o600)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		catalogFile: changed,
		filepath.Join(root, "internal/agent/fourth/fourth.go"): filepath.Join(root,
			"internal/conventions/testdata/fourth/fourth.go"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	writeFile(t, overlayFile, string(overlay), 0o600)
	program = filepath.Join(dir, "fit")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlayFile, "-ldflags=-s -w", "-o", program,
		"./cmd/fit")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}

func writeFile(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// TestAFourthAgentIsAFolderAndALine: a folder and a line are enough for an agent to be chosen, run,
// examined, recognised, imported and redacted.
func TestAFourthAgentIsAFolderAndALine(t *testing.T) {
	t.Parallel()
	program, home, bin := withFourthAgent(t), t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(bin, "fourth"), fourthProgram, 0o700)
	const key = "key-of-the-fourth-0001"
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = home
		cmd.Env = []string{
			"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + home,
			"FOURTH_KEY=" + key,
		}
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("fit %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
		}
		return string(out)
	}
	if list := run("agents", "list"); !strings.Contains(list, "\nfourth ") {
		t.Errorf("the list of agents does not have it:\n%s", list)
	}
	if found := run("doctor", "--format", "json"); !strings.Contains(found, `"name": "fourth"`) ||
		!strings.Contains(found, "4.0.1") {
		t.Errorf("doctor does not know the agent:\n%s", found)
	}

	trace := filepath.Join(home, "trace.ndjson")
	shown := run("harness", "run", "--agent", "fourth", "--task-text", "count", "--output", trace)
	written, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(written), "I was asked to count with") || strings.Contains(string(written)+shown, key) {
		t.Errorf("the trace lacks what the agent said, or tells its key:\n%s\n%s", written, shown)
	}

	bare := filepath.Join(home, "bare.jsonl")
	writeFile(t, bare, `{"fourth":"hello","id":"f-2"}`+"\n"+`{"fourth":"says","text":"hi"}`+"\n"+
		`{"fourth":"end","text":"hi"}`+"\n", 0o600)
	for file, id := range map[string]string{trace: "f-1", bare: "f-2"} {
		var got struct {
			Agent, Dialect, SessionID, Outcome string
			Turns                              int
		}
		if err := json.Unmarshal([]byte(run("session", "import", file)), &got); err != nil {
			t.Fatal(err)
		}
		if got.Agent != "fourth" || got.Dialect != "fourth-lines" || got.SessionID != id || got.Outcome != "success" ||
			got.Turns != 1 {
			t.Errorf("imported from %s: %+v", file, got)
		}
	}
}
