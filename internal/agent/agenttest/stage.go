package agenttest

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/session"
)

// Turn is one turn of a script, in the words of package scripted.
type Turn = map[string]any

// Bash returns a turn that calls the shell.
func Bash(command string) Turn { return Turn{"calls": []Turn{{"bash": command}}} }

// Says returns a turn that says something and is the last of its prompt.
func Says(text string) Turn { return Turn{"text": text} }

// Patience is the grace period of agents that stop when they are asked to, however slow the machine
// is. A test whose agent does not stop has a shorter one.
const Patience = 3 * time.Minute

// Stage is an agent's real program with a scripted model and a workspace, for tests specific to one
// agent; test/agents tests what all agents share.
type Stage struct {
	// Config is the config of new sessions; tests change it before they start one.
	Config agent.Config

	t     testing.TB
	agent agent.Agent

	mu       sync.Mutex
	events   []string
	requests []Request
	watcher  func(event string)
}

// NewStage serves a script, every turn of which counts as 1000 tokens of input and 100 of output,
// and finds the program among the installed ones.
func NewStage(t testing.TB, a agent.Agent, model string, turns ...Turn) *Stage {
	t.Helper()
	script := Turn{"turns": turns, "usage": Turn{"input": 1000, "output": 100}}
	return NewStageIn(t, "../../../test/agents/node_modules/.bin", a, model, script)
}

// NewStageIn serves a whole script, and finds the program in a directory.
func NewStageIn(t testing.TB, dir string, a agent.Agent, model string, script Turn) *Stage {
	t.Helper()
	s := &Stage{t: t, agent: a}
	data, err := json.Marshal(script)
	if err != nil {
		t.Fatal(err)
	}
	url := scriptedtest.ServeAll(t, map[string]string{"": string(data)},
		scripted.Options{LogBodies: true, OnRequest: s.request})
	bin, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{
		"PATH=" + Path(bin), "HOME=" + t.TempDir(),
		"LANG=C.UTF-8",
	}
	installation := Find(t, a, agent.Host{
		Environ:  environ,
		CacheDir: filepath.Join(filepath.Dir(bin), ".cache", "fit"),
	})
	s.Config = agent.Config{
		Name:         "worker",
		Dir:          t.TempDir(),
		Home:         t.TempDir(),
		Environ:      environ,
		ExtraEnv:     []string{sandbox.RunMarker + "=" + t.Name() + url},
		Model:        model,
		ModelURL:     url,
		OneShot:      true,
		Spawner:      sandbox.NewSpawner(),
		Installation: &installation,
		Grace:        Patience,
		Events:       s.event,
	}
	return s
}

// Path returns a PATH with the npm programs in a directory of test/, then those in test/acp. One of
// the latter is Node.js 22, which starts the programs a sixth faster than Node.js 20.
func Path(bin string) string {
	list := []string{bin, filepath.Join(bin, "../../../acp/node_modules/.bin"), os.Getenv("PATH")}
	return strings.Join(list, string(os.PathListSeparator))
}

// Overlap lets more tests run in parallel than there are processors, unless a number was given:
// agents wait most of the time, for their model, for their commands and between attempts.
func Overlap() {
	flag.Parse()
	const name, many = "test.parallel", "4"
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if !given {
		_ = flag.Set(name, many) // every test binary has it
	}
}

// Find looks for an agent's program, without which the test cannot run. Unless the host names a
// cache, it uses that of the commands: some programs take seconds to print their version.
func Find(t testing.TB, a agent.Agent, host agent.Host) agent.Installation {
	t.Helper()
	if cache, err := os.UserCacheDir(); err == nil && host.CacheDir == "" {
		host.CacheDir = filepath.Join(cache, "fit")
	}
	installation, err := a.Probe(t.Context(), host)
	if _, ok := errors.AsType[*agent.NotFoundError](err); ok {
		testenv.Missing(t, "%v (make test installs it in test/agents)", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return installation
}

// UnpackCopilot lets copilot, if the agent is it, unpack itself once for all tests beside the
// packages: it is 235 MB, which it would write into every home.
func (s *Stage) UnpackCopilot() {
	s.t.Helper()
	if s.agent.Info().ID != "copilot" {
		return
	}
	dir, err := filepath.Abs(filepath.Join(filepath.Dir(s.Config.Installation.Path), "../.cache/copilot"))
	if err != nil {
		s.t.Fatal(err)
	}
	command := exec.CommandContext(s.t.Context(), s.Config.Installation.Path)
	command.Env = append(slices.Clone(s.Config.Environ), "COPILOT_SEA_EXTRACT_ONLY=1", "COPILOT_PKG_CACHE_HOME="+dir)
	if out, err := command.CombinedOutput(); err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
	s.Config.ExtraEnv = append(s.Config.ExtraEnv, "COPILOT_PKG_CACHE_HOME="+dir)
	s.Config.Installation.ReadPaths = append(s.Config.Installation.ReadPaths, dir)
}

func (s *Stage) request(r scripted.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, Request{Path: r.Path, Body: string(r.Body)})
}

func (s *Stage) event(event []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, string(event))
	if s.watcher != nil {
		s.watcher(string(event))
	}
}

// Start begins a session, which ends with the test.
func (s *Stage) Start() agent.Session {
	s.t.Helper()
	return s.StartAs(s.agent)
}

// StartAs begins a session with an agent that is the stage's in another configuration.
func (s *Stage) StartAs(a agent.Agent) agent.Session {
	s.t.Helper()
	conversation, err := agent.Start(s.t.Context(), a, s.Config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conversation.Close() })
	return conversation
}

// Prompt gives a prompt, which must at least be run.
func (s *Stage) Prompt(ctx context.Context, conversation agent.Session, text string) agent.Result {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	result, err := conversation.Prompt(ctx, text)
	if err != nil {
		s.t.Fatalf("prompt %q: %v", text, err)
	}
	return result
}

// Run gives prompts in one session, which is closed afterwards, and checks that nothing is left of
// it.
func (s *Stage) Run(prompts ...string) []agent.Result {
	s.t.Helper()
	conversation := s.Start()
	var results []agent.Result
	for _, prompt := range prompts {
		results = append(results, s.Prompt(s.t.Context(), conversation, prompt))
	}
	if err := conversation.Close(); err != nil {
		s.t.Errorf("close: %v", err)
	}
	s.CheckAlone()
	return results
}

// CheckAlone fails the test if a process of the run is alive.
func (s *Stage) CheckAlone() {
	s.t.Helper()
	for _, pid := range s.Processes() {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		s.t.Errorf("left behind: %q", command)
	}
}

// Processes returns the processes of the run that are alive.
func (s *Stage) Processes() []int {
	var found []int
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || !strings.Contains("\x00"+string(data), "\x00"+s.Config.ExtraEnv[0]+"\x00") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			found = append(found, pid)
		}
	}
	return found
}

// Watch calls a function for every event from now on.
func (s *Stage) Watch(watcher func(event string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watcher = watcher
}

// Events returns the lines that the program has printed since Forget.
func (s *Stage) Events() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// Forget forgets the events so far.
func (s *Stage) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = nil
}

// Request is a request that the model received.
type Request struct{ Path, Body string }

// Requests returns what the model was asked.
func (s *Stage) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Told returns the text of everything that the model was sent.
func (s *Stage) Told() string {
	var b strings.Builder
	for _, request := range s.Requests() {
		b.WriteString(request.Body + "\n")
	}
	return b.String()
}

// Session returns the one session in the events.
func (s *Stage) Session() *session.EnrichedSession {
	s.t.Helper()
	sessions, err := session.Read(strings.NewReader(strings.Join(s.Events(), "\n")), s.agent.Dialects(),
		session.Options{})
	if err != nil || len(sessions) != 1 {
		s.t.Fatalf("%d sessions, %v", len(sessions), err)
	}
	return sessions[0]
}

// File returns a file of the workspace; empty if there is none.
func (s *Stage) File(name string) string {
	data, err := os.ReadFile(filepath.Join(s.Config.Dir, name))
	if err != nil {
		return ""
	}
	return string(data)
}

// Write writes a file of the workspace.
func (s *Stage) Write(name, content string) {
	s.t.Helper()
	path := filepath.Join(s.Config.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		s.t.Fatal(err)
	}
}
