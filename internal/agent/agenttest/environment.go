// Package agenttest has what the tests of agents' adapters share: a program that stands in for the
// agent's own and records what it was given, and a Stage, which is the real program with a scripted
// model and a workspace.
//
//	func TestMain(m *testing.M) {
//		agenttest.MaybeDump()
//		os.Exit(m.Run())
//	}
package agenttest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/trace"
)

// dumper is the name under which the test binary acts as the agent's program and records its
// environment.
const dumper = "dump-environment"

// MaybeDump acts as the program of Dumper if the test binary was started under its name; then it
// does not return.
func MaybeDump() {
	if filepath.Base(os.Args[0]) != dumper {
		return
	}
	data, err := json.Marshal(os.Environ())
	if err != nil || os.WriteFile(os.Args[0]+".json", data, 0o600) != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// Dumper returns a program that records its environment, for CheckVariables, and prints nothing.
func Dumper(t testing.TB) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), dumper)
	Link(t, program)
	return program
}

// Link links a name to the test binary.
func Link(t testing.TB, name string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
}

// common are the variables that every child has, in the environment of Config.
var common = []string{
	"CI", "EXTRA", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_NAME",
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_TERMINAL_PROMPT",
	"HOME", "LANG", "NO_COLOR", "PATH", "TERM", "TMPDIR", "TZ",
}

// Config returns the config of a user whose environment is full of variables that an agent must not
// see; more variables can be given, and a program that stands in for the agent's.
func Config(t testing.TB, program, version string, environ ...string) agent.Config {
	t.Helper()
	return agent.Config{
		Name:         "worker",
		Dir:          t.TempDir(),
		Home:         t.TempDir(),
		OneShot:      true,
		Spawner:      sandbox.NewSpawner(),
		Events:       func([]byte) {},
		Installation: &agent.Installation{Path: program, Version: version},
		ExtraEnv:     []string{"EXTRA=1"},
		Environ: append([]string{
			"PATH=" + os.Getenv("PATH"), "LANG=C", "AWS_SECRET_ACCESS_KEY=a", "GITHUB_TOKEN=g", "GH_TOKEN=g",
			"SSH_AUTH_SOCK=/s", "NODE_OPTIONS=--inspect", "RUST_LOG=trace",
		}, environ...),
	}
}

// CheckVariables compares the set of variables that the program of Dumper was given: those that
// every child has, and the agent's own.
func CheckVariables(t testing.TB, program string, own ...string) {
	t.Helper()
	data, err := os.ReadFile(program + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var variables, names []string
	if err := json.Unmarshal(data, &variables); err != nil {
		t.Fatal(err)
	}
	for _, variable := range variables {
		name, _, _ := strings.Cut(variable, "=")
		names = append(names, name)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(slices.Concat(common, own))),
		slices.Sorted(slices.Values(names))); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

// Script makes a program out of a shell script.
func Script(t testing.TB, script string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return program
}

// CheckRedaction runs a session whose program prints secrets, with a trace that knows the
// registry's secrets: it must contain the text that is shown, and none of the secrets.
func CheckRedaction(t testing.TB, a agent.Agent, cfg agent.Config, shown string, secrets ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace.ndjson")
	known := agent.NewRegistry(a).Secrets(cfg.Environ)
	writer, err := trace.Open(file,
		trace.Config{Redactor: redact.New(redact.Config{Environ: cfg.Environ, Extra: known})})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Events = func(event []byte) {
		if _, err := writer.Emit(cfg.Name, event); err != nil {
			t.Errorf("write trace: %v", err)
		}
	}
	conversation, err := a.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conversation.Prompt(t.Context(), "Show what you have."); err != nil {
		t.Fatal(err)
	}
	if err := conversation.Close(); err != nil {
		t.Error(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(written), shown) {
		t.Errorf("the trace does not have %q:\n%s", shown, written)
	}
	for _, secret := range secrets {
		if strings.Contains(string(written), secret) {
			t.Errorf("the trace tells %s:\n%s", secret, written)
		}
	}
}
