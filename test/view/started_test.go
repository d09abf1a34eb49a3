package view

import (
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/model/scripted"
)

// A run that ended before its agent was started has no numbers, on the page and at the terminal,
// and the command of the page tries it again.
func TestARunWhoseAgentWasNotStartedSaysSo(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	family, dir := filepath.Join(top, "family"), filepath.Join(top, "unstarted")
	ready := filepath.Join(top, "ready")
	if out, err := fitCommand(t, "benchmark", "init", family).Output(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	hook := "#!/bin/sh\ntest -e '" + ready + "' && exit\necho the database does not start >&2\nexit 1\n"
	path := filepath.Join(family, "tasks/greeting/hooks/preflight.sh")
	if err := os.WriteFile(path, []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	script, err := scripted.Parse([]byte(`{"turns": [{"text": "Done."}]}`))
	if err != nil {
		t.Fatal(err)
	}
	model := httptest.NewServer(scripted.NewServer(map[string]*scripted.Script{"": script}, scripted.Options{}))
	t.Cleanup(model.Close)
	run := func(args ...string) int {
		cmd := fitCommand(t, append([]string{"benchmark", "run"}, args...)...)
		cmd.Env, cmd.Stdout = append(os.Environ(), "ANTHROPIC_API_KEY=key-of-the-scripted-model"), io.Discard
		_ = cmd.Run()
		return cmd.ProcessState.ExitCode()
	}
	if code := run("--family", family, "--runs", "1", "--no-probe", "--isolation", "none", "--arm", "a=agent:builtin,model:claude-sonnet-4-5",
		"--model-url", model.URL, "--output", dir); code != 3 {
		t.Fatalf("an experiment without a verdict ends with code %d, want 3", code)
	}
	shown, err := fitCommand(t, "benchmark", "show", dir, "greeting/a/0").Output()
	said := string(shown)
	if err != nil || !strings.Contains(said, "the agent was not started\n") || strings.Contains(said, "0 turns") {
		t.Errorf("the terminal shows (%v)\n%s", err, shown)
	}
	address := serve(t, top)
	g := &guide{asked: askView(t, address)}
	at := "#/x/" + g.id(t, "unstarted")
	pages := glance(t, map[string]any{"url": address},
		spot{"grid", at, "table.grid tbody tr"}, spot{"cell", at + "/greeting/a/0", ".outcome"})
	pages["cell"].says(t, "the agent was not started", "Nothing: the agent was not started.")
	for name, page := range pages {
		if strings.Contains(page.Text, "0 turns") || strings.Contains(page.Text, " ms") {
			t.Errorf("the %s shows numbers of what never ran: %s", name, page.Text)
		}
	}
	_, command, _ := strings.Cut(pages["grid"].Text, "What to do: fit-benchmark run ")
	command, _, found := strings.Cut(command, " --retry-errors")
	if !found {
		t.Fatalf("the page says %q", pages["grid"].Text)
	}
	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := run(append(strings.Fields(command), "--retry-errors", "--no-probe")...); code != 0 {
		t.Errorf("%s ends with code %d", command, code)
	}
}
