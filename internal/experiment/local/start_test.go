package local

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/agent/builtin"
	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/agent/claudecode"
	"github.com/fit-eval/fit/internal/agent/codex"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/ledger"
)

// answering serves a model that gives every request the same answer.
func answering(t *testing.T, status int, body string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the client may have gone
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// hanging serves a model that takes every request and never answers.
func hanging(t *testing.T) string {
	t.Helper()
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(over); server.Close() })
	return server.URL
}

// installed is a machine with the agents' real programs.
func installed(t *testing.T, agents ...agent.Agent) *Machine {
	t.Helper()
	bin, err := filepath.Abs("../../../test/agents/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	machine := testMachine()
	machine.Registry = agent.NewRegistry(append(agents, &builtin.Agent{MaxRetries: -1})...)
	machine.Host.Environ = []string{
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + t.TempDir(), "LANG=C.UTF-8", "ANTHROPIC_API_KEY=a-key-for-tests", "OPENAI_API_KEY=a-key-for-tests",
	}
	machine.Host.CacheDir = filepath.Join(filepath.Dir(bin), ".cache", "fit")
	for _, a := range agents {
		agenttest.Find(t, a, machine.Host)
	}
	return machine
}

// brokenProgram is a machine whose Claude Code tells its version and can do nothing else.
func brokenProgram(t *testing.T) *Machine {
	t.Helper()
	dir := t.TempDir()
	for name, version := range map[string]string{"claude": "2.1.90 (Claude Code)", "codex": "codex-cli 0.166.0"} {
		writeFiles(t, dir, map[string]string{name + ".sh": "#!/bin/sh\n" +
			`[ "$1" = --version ] && { echo "` + version + `"; exit 0; }` +
			"\necho \"Error: Cannot find module './cli.js'\" >&2\nexit 1\n"})
		if err := os.Rename(filepath.Join(dir, name+".sh"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	machine := testMachine()
	machine.Registry = agent.NewRegistry(claudecode.New(), codex.New())
	machine.Host.Environ = []string{
		"PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + t.TempDir(), "ANTHROPIC_API_KEY=a-key-for-tests", "OPENAI_API_KEY=a-key-for-tests",
	}
	return machine
}

const (
	noSuchModelAnthropic = `{"type":"error","error":{"type":"not_found_error","message":"model: claude-of-nobody"}}`
	noSuchModelOpenAI    = `{"error":{"message":"The model gpt-of-nobody does not exist","type":"invalid_request_error","code":"model_not_found"}}`
)

// noProbes throws away what probes cost.
func noProbes(experiment.Probe) error { return nil }

// An agent that never completed a turn of its model has not been measured.
func TestAnAgentThatNeverStartedIsMissingData(t *testing.T) {
	vendors := catalog.Default()
	registered := func(id string) agent.Agent {
		found, err := vendors.Get(id)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for name, test := range map[string]struct {
		machine func(t *testing.T) *Machine
		agent   string
		model   string
		url     func(t *testing.T) string
		limit   time.Duration
	}{
		"no such model, built in": {
			func(t *testing.T) *Machine { return installed(t) }, "builtin", "claude-sonnet-4-5",
			func(t *testing.T) string { return answering(t, http.StatusNotFound, noSuchModelAnthropic) }, 0,
		},
		"bad request, built in": {
			func(t *testing.T) *Machine { return installed(t) }, "builtin", "claude-sonnet-4-5",
			func(t *testing.T) string {
				return answering(t, http.StatusBadRequest,
					`{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`)
			}, 0,
		},
		"a page instead of a model": {
			func(t *testing.T) *Machine { return installed(t) }, "builtin", "claude-sonnet-4-5",
			func(t *testing.T) string { return answering(t, http.StatusOK, "<html>welcome</html>") }, 0,
		},
		"nobody listens": {
			func(t *testing.T) *Machine { return installed(t) }, "builtin", "claude-sonnet-4-5",
			func(*testing.T) string { return "http://127.0.0.1:1" }, 0,
		},
		"a model that hangs": {
			func(t *testing.T) *Machine { return installed(t) }, "builtin", "claude-sonnet-4-5",
			hanging, time.Second,
		},
		"no such model, Claude Code": {
			func(t *testing.T) *Machine { return installed(t, registered("claude-code")) },
			"claude-code", "claude-of-nobody",
			func(t *testing.T) string { return answering(t, http.StatusNotFound, noSuchModelAnthropic) }, 0,
		},
		"no such model, Codex": {
			func(t *testing.T) *Machine { return installed(t, registered("codex")) }, "codex",
			"gpt-of-nobody", func(t *testing.T) string {
				return answering(t, http.StatusBadRequest,
					noSuchModelOpenAI)
			}, 0,
		},
		"no such model, pi": {
			func(t *testing.T) *Machine { return installed(t, registered("pi-agent")) }, "pi-agent",
			"claude-of-nobody",
			func(t *testing.T) string { return answering(t, http.StatusNotFound, noSuchModelAnthropic) }, 0,
		},
		"a broken program":        {brokenProgram, "claude-code", "claude-sonnet-4-5", hanging, 0},
		"a broken program, codex": {brokenProgram, "codex", "gpt-5.1-codex", hanging, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tr := preparedOn(t, test.machine(t), oneTask(t, nil), experiment.Setup{
				AgentTimeout: test.limit,
				Arms: []experiment.Arm{{
					Name: "default", Agent: test.agent, Model: test.model,
					ModelURL: test.url(t),
				}},
			})
			// a hanging model takes the probe's time, and vendors' programs take theirs to give up
			if test.limit == 0 && (test.agent == "builtin" || strings.HasPrefix(name, "a broken program")) {
				_, executor := tr.open(t, t.TempDir())
				if err := executor.Probe(t.Context(), noProbes); err == nil ||
					!strings.Contains(err.Error(), "arm default") {
					t.Errorf("the probe passes: %v", err)
				}
			}
			_, outcome, records := execute(t, tr, 1)
			r := records[0]
			missing := r.ErrorClass == ledger.ErrorAgentStart || r.ErrorClass == ledger.ErrorProvider
			if strings.HasPrefix(name, "a broken program") && !strings.Contains(r.ErrorMessage, "Cannot find module") {
				t.Errorf("the record does not say what the program said: %s", r.ErrorMessage)
			}
			if r.Verdict != ledger.Error || !missing || r.Grade != nil || r.ErrorMessage == "" {
				t.Errorf("%s %s after %d turns: %s", r.Verdict, r.ErrorClass, r.Turns, r.ErrorMessage)
			}
			if outcome.Status != experiment.Incomplete {
				t.Errorf("the experiment is %s", outcome.Status)
			}
		})
	}
}

// TestAServiceThatFailsInMidRunGivesNoVerdict: the first call is answered, and from then on none
// is. What the agent made of it until then is not what it can do.
func TestAServiceThatFailsInMidRunGivesNoVerdict(t *testing.T) {
	for name, test := range map[string]struct {
		status     int // zero never answers
		body       string
		unverified int
	}{
		"a proxy wants a password": {http.StatusProxyAuthRequired, `{"error":{"message":"log in"}}`, 0},
		"a reply of nothing": {
			http.StatusOK,
			`{"id":"m","type":"message","role":"assistant","content":[],"stop_reason":"end_turn","usage":{}}`, 0,
		},
		"no answer": {0, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			answers, err := scripted.Parse([]byte(`{"turns":[{"calls":[{"bash":"true"}]},{"text":"done"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			model := scripted.NewServer(map[string]*scripted.Script{"": answers}, scripted.Options{})
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case asked.Add(1) == 1:
					model.ServeHTTP(w, r)
				case test.status == 0:
					_, _ = io.Copy(io.Discard, r.Body) // until then the server does not notice who leaves
					<-r.Context().Done()
				default:
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(test.status)
					_, _ = io.WriteString(w, test.body) // the client may have gone
				}
			}))
			t.Cleanup(server.Close)
			limits := []time.Duration{0}
			if test.status == 0 {
				limits = testenv.Limits()
			}
			var r ledger.Record
			for _, limit := range limits { // until the agent asks a second time, and waits, within it
				asked.Store(0)
				tr := preparedOn(t, installed(t), oneTask(t, nil), experiment.Setup{
					AgentTimeout: limit,
					Arms: []experiment.Arm{{
						Name: "default", Agent: "builtin", Model: "claude-sonnet-4-5", ModelURL: server.URL,
					}},
				})
				_, _, records := execute(t, tr, 1)
				if r = records[0]; asked.Load() > 1 && r.Verdict == ledger.Error {
					break
				}
			}
			if r.Verdict != ledger.Error || r.ErrorClass != ledger.ErrorProvider || r.Turns == 0 ||
				r.Unverified != test.unverified {
				t.Errorf("%s %s after %d turns, unverified %d: %s", r.Verdict, r.ErrorClass, r.Turns, r.Unverified,
					r.ErrorMessage)
			}
		})
	}
}

// The probe asks every arm: what one arm's model answers says nothing about another's variables,
// profile or lead.
func TestEveryArmIsProbed(t *testing.T) {
	good, bad := serveScript(t, solves), answering(t, http.StatusNotFound, noSuchModelAnthropic)
	for name, second := range map[string]experiment.Arm{
		"model":   {Agent: "builtin", Model: "claude-sonnet-4-5", ModelURL: bad},
		"profile": {Agent: "builtin", Model: "claude-sonnet-4-5", ModelURL: good, Profile: "absent"},
		"lead":    {Agent: "builtin", Model: "claude-sonnet-4-5", ModelURL: good, Lead: "builtin", LeadModel: "nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			machine := installed(t)
			if name == "profile" { // found when the plan is made
				_, err := Prepare(t.Context(), experiment.Setup{
					Family: oneTask(t, nil), Runs: 1,
					Arms: []experiment.Arm{{Name: "second", Agent: "builtin", Profile: "absent"}},
				}, machine)
				if err == nil || !strings.Contains(err.Error(), "absent") {
					t.Error(err)
				}
				return
			}
			if name == "lead" {
				second.ModelURL = serveScript(t,
					`{"scenarios":[{"name":"lead","when":{"model":"nobody"},"turns":[{"fault":{"status":404,"type":"not_found_error","message":"no such model"},"text":"x"}]}],"turns":[{"text":"ready"}]}`)
			}
			second.Name = "second"
			tr := preparedOn(t, machine, oneTask(t, nil), experiment.Setup{Arms: []experiment.Arm{
				{Name: "first", Agent: "builtin", Model: "claude-sonnet-4-5", ModelURL: good}, second,
			}})
			_, executor := tr.open(t, t.TempDir())
			if err := executor.Probe(t.Context(), noProbes); err == nil ||
				!strings.Contains(err.Error(), "arm second") {
				t.Errorf("%v", err)
			}
		})
	}
}
