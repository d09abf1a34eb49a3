// Package agents drives every agent of the catalog for real, through the gateway and against the
// scripted model on loopback: no key, no network. The table is the same for all of them and its
// assertions are on the canonical session; where agents truly differ, what they declare about
// themselves decides what is expected.
package agents

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/acp"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/gateway"
	modelcalls "github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

func TestMain(m *testing.M) {
	agenttest.Overlap()
	os.Exit(m.Run())
}

// eachAgent runs a test for every agent of the catalog that has tools and an adapter of its own; an
// agent whose program is not installed is missing. Those of the Agent Client Protocol are in
// test/acp.
func eachAgent(t *testing.T, test func(t *testing.T, a agent.Agent)) {
	eachAgentThat(t, func(agent.Info) bool { return true }, test)
}

// eachAgentThat runs a test for those agents of which a condition holds, beside all other tests.
func eachAgentThat(t *testing.T, holds func(agent.Info) bool, test func(t *testing.T, a agent.Agent)) {
	t.Parallel()
	for _, a := range catalog.Default().All() {
		if _, shared := a.(*acp.Agent); shared || a.Info().Capabilities.MCP == agent.Unsupported || !holds(a.Info()) {
			continue
		}
		t.Run(string(a.Info().ID), func(t *testing.T) {
			t.Parallel()
			test(t, a)
		})
	}
}

// hasProcess holds for agents that are programs of their own.
func hasProcess(info agent.Info) bool { return strings.HasPrefix(info.InstallHint, "npm ") }

// quick holds for agents that start in no time, and in "make soak" for all of them: for what is the
// same to an agent as something that all have met.
func quick(info agent.Info) bool { return !hasProcess(info) || os.Getenv("FIT_SOAK") != "" }

// oneOfEach holds for one agent that is part of fit and for one that is a program of its own, the
// one that starts the quickest, and in "make soak" for all of them: for what fit does in the same
// way with all programs.
func oneOfEach(info agent.Info) bool { return quick(info) || info.ID == "codex" }

// environ is the environment of somebody who has the agents installed, no key of any vendor, and
// secrets that are none of the agents' business.
func environ(t *testing.T) []string {
	t.Helper()
	bin, err := filepath.Abs("node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	path := agenttest.Path(bin)
	if other := os.Getenv("FIT_TEST_AGENTS_PATH"); other != "" { // to drive other versions than the pinned ones
		path = other + string(os.PathListSeparator) + path
	}
	return []string{
		"PATH=" + path, "HOME=" + t.TempDir(),
		"LANG=C.UTF-8", "SECRET_OF_SOMEBODY=hunter2",
	}
}

// rig is one agent in one workspace, with a scripted model and a trace.
type rig struct {
	t      *testing.T
	agent  agent.Agent
	config agent.Config
	trace  string
	writer *trace.Writer
	calls  atomic.Int64    // that went through the gateway
	kept   *gateway.Record // of those calls; nil: nobody keeps them
	faults *gateway.Faults // that those calls meet
	deny   bool            // no tools of the vendor
	mu     sync.Mutex
	met    map[string]int // how often each fault was met
	ended  []modelcalls.Call
	told   chan struct{} // has something after an event
}

// scriptName is the name of the script for those who ask for it by name.
const scriptName = "named"

// lane is the name under which the agent's events are written.
const lane = "worker"

// newRig serves a script and prepares a workspace with a bug in it, which `make test` finds.
func newRig(t *testing.T, a agent.Agent, script string) *rig {
	t.Helper()
	testenv.NeedTool(t, "make")
	url := scriptedtest.ServeAll(t, map[string]string{"": script, scriptName: script}, scripted.Options{})
	env := environ(t)
	installation := agenttest.Find(t, a, agent.Host{Environ: env, CacheDir: probeCache(t)})
	r := &rig{
		t:     t,
		agent: a,
		trace: filepath.Join(t.TempDir(), "trace.ndjson"),
		met:   map[string]int{},
		told:  make(chan struct{}, 1),
	}
	var err error
	if r.writer, err = trace.Open(r.trace, trace.Config{}); err != nil {
		t.Fatal(err)
	}
	proxy := &gateway.OnDemand{}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	r.config = agent.Config{
		Name: lane, Dir: workspace(t), Home: t.TempDir(), Environ: env,
		ExtraEnv: []string{sandbox.RunMarker + "=" + r.trace},
		Model:    modelName(a), ModelURL: url, OneShot: true, Spawner: sandbox.NewSpawner(),
		Installation: &installation,
		Grace:        agenttest.Patience,
		Events:       r.record,
		Gateway: agent.Gateway{Join: func(cfg agent.Config, upstreams []gateway.Upstream) (*gateway.Seat, error) {
			member := gateway.Member{
				Name:      lane,
				FaultKey:  "run",
				Upstreams: upstreams,
				OnCall:    r.called,
			}
			proxy.Config.Faults, proxy.Config.DenyServerTools = r.faults, r.deny
			if r.kept != nil {
				if err := r.kept.Enter(&member, cfg.OwnDirs()); err != nil {
					return nil, err
				}
			}
			return proxy.Join(member)
		}},
		Started: func(s agent.Started) {
			r.emit(trace.AgentStart{
				Type: trace.TypeAgentStart, Agent: lane, Runtime: string(a.Info().ID), Version: s.Version,
				Protocol: s.Protocol,
				Model:    s.Model, KeyVisible: s.KeyVisible, Auth: s.Auth, Gateway: s.Gateway,
				GatewayReason: s.GatewayReason,
			})
		},
	}
	return r
}

// modelName is a name for the scripted model, which answers to any. An agent that speaks nothing
// but the Responses protocol may choose the tools that it offers by the model's name, so it gets
// one that means all of them.
func modelName(a agent.Agent) string {
	if slices.Equal(a.Info().Protocols, []string{"responses"}) {
		return "gpt-5.5"
	}
	return "scripted-model"
}

// probeCache is shared by all tests of a run, as it is by all runs of a user.
func probeCache(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("node_modules/.cache/fit")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func workspace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"calc.go":  "package calc\n\nfunc Add(a, b int) int {\n\treturn a - b\n}\n",
		"Makefile": "test:\n\t@grep -q 'a + b' calc.go && echo ok || (echo FAIL; exit 1)\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// called notes a call that has ended.
func (r *rig) called(c modelcalls.Call) {
	r.calls.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = append(r.ended, c)
	if c.Outcome == modelcalls.Fault {
		r.met[c.Error]++
	}
}

// answered counts the calls of the model that got an answer, or its beginning.
func (r *rig) answered() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	var wire session.Wire
	for _, call := range r.ended {
		wire.Add(call)
	}
	return wire.Answered()
}

func (r *rig) record(event []byte) {
	if _, err := r.writer.Emit(lane, event); err != nil {
		r.t.Errorf("write trace: %v", err)
	}
	select {
	case r.told <- struct{}{}:
	default: // one is enough
	}
}

func (r *rig) emit(value any) {
	if _, err := r.writer.EmitValue(trace.Orchestrator, value); err != nil {
		r.t.Errorf("write trace: %v", err)
	}
}

// start begins a session with the agent, which ends with the test.
func (r *rig) start() agent.Session {
	r.t.Helper()
	s, err := agent.Start(r.t.Context(), r.agent, r.config)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = s.Close() })
	return s
}

// prompt asks the agent to do something; it must at least run.
func (r *rig) prompt(ctx context.Context, s agent.Session, text string) agent.Result {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	r.emit(trace.Prompt{Type: trace.TypePrompt, Agent: lane, Text: text})
	result, err := s.Prompt(ctx, text)
	if err != nil {
		r.t.Fatalf("prompt: %v", err)
	}
	return result
}

// run gives one prompt in a process of its own and returns how it went, and the canonical session.
func (r *rig) run(text string) (agent.Result, *session.EnrichedSession) {
	r.t.Helper()
	s := r.start()
	result := r.prompt(r.t.Context(), s, text)
	if err := s.Close(); err != nil {
		r.t.Errorf("close: %v", err)
	}
	if _, routed := r.agent.(agent.Routed); routed && r.calls.Load() == 0 {
		r.t.Error("no model call went through the gateway")
	}
	return result, r.session()
}

// session enriches the trace.
func (r *rig) session() *session.EnrichedSession {
	r.t.Helper()
	file, err := os.Open(r.trace)
	if err != nil {
		r.t.Fatal(err)
	}
	defer file.Close()
	sessions, err := session.Read(file, catalog.Default().Dialects(), session.Options{})
	if err != nil {
		r.t.Fatalf("%v; the trace:\n%s", err, r.tail())
	}
	if len(sessions) != 1 {
		r.t.Fatalf("the trace holds %d sessions", len(sessions))
	}
	s := sessions[0]
	if s.Agent != r.agent.Info().ID {
		r.t.Errorf("the session is said to be of %q", s.Agent)
	}
	if s.ParseErrors > 0 {
		r.t.Errorf("%d broken lines; the trace:\n%s", s.ParseErrors, r.tail())
	}
	// in an experiment, more turns than answers mean that the agent has another way to its model
	if answered := r.answered(); r.calls.Load() > 0 && s.Turns > answered {
		r.t.Errorf("the agent shows %d turns, and the gateway answered %d calls", s.Turns, answered)
	}
	r.t.Cleanup(func() {
		if r.t.Failed() {
			var page strings.Builder
			_ = session.Show(&page, s)
			r.t.Logf("the session:\n%s\nthe end of the trace:\n%s", page.String(), r.tail())
		}
	})
	return s
}

// tail is the end of the trace, for messages.
func (r *rig) tail() string {
	data, err := os.ReadFile(r.trace)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	lines = lines[max(0, len(lines)-12):]
	for i, line := range lines {
		lines[i] = line[:min(len(line), 600)]
	}
	return strings.Join(lines, "\n")
}

// file reads a file of the workspace; empty if there is none.
func (r *rig) file(name string) string {
	data, err := os.ReadFile(filepath.Join(r.config.Dir, name))
	if err != nil {
		return ""
	}
	return string(data)
}

// survivors lists the processes that carry the run's mark.
func (r *rig) survivors() []string {
	mark := r.config.ExtraEnv[0]
	var alive []string
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil && strings.Contains("\x00"+string(data), "\x00"+mark+"\x00") {
			command, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			alive = append(alive, strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return alive
}

// errorsOf returns the errors of some kind.
func errorsOf(s *session.EnrichedSession, kind session.ErrorKind) []session.ErrorInfo {
	var found []session.ErrorInfo
	for _, event := range s.Events {
		if event.Error != nil && event.Error.Kind == kind {
			found = append(found, *event.Error)
		}
	}
	return found
}

// milestones returns when each milestone was reached, as its place in the order.
func milestones(s *session.EnrichedSession) map[string]int {
	reached := map[string]int{}
	for i, m := range s.Milestones {
		reached[m.Kind] = i
	}
	return reached
}

// calls returns the calls that count as some tool.
func calls(s *session.EnrichedSession, effective string) []session.ToolCall {
	var found []session.ToolCall
	for _, event := range s.Events {
		if event.Tool != nil && event.Tool.Effective() == effective {
			found = append(found, *event.Tool)
		}
	}
	return found
}

// scriptOf writes turns as a script in which every turn consumes 1000 tokens of input and 100 of
// output.
func scriptOf(t *testing.T, turns ...map[string]any) string {
	t.Helper()
	data, err := json.Marshal(map[string]any{"turns": turns, "usage": map[string]int{"input": 1000, "output": 100}})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

type turn = map[string]any

func call(verb string, value any, more ...any) turn {
	c := turn{verb: value}
	for i := 0; i+1 < len(more); i += 2 {
		c[more[i].(string)] = more[i+1]
	}
	return c
}
