// Package teams lets agents of different vendors work together for real, against the scripted model
// on loopback: no key, no network.
package teams

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/trace"
)

// asProgram makes the test binary the program itself, for tests that kill it.
const asProgram = "FIT_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Main())
	}
	// Agents start slowly and then mostly wait, so that one more of them keeps the processors busy.
	if err := flag.Set("test.parallel", fmt.Sprint(runtime.GOMAXPROCS(0)+1)); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// soaking reports whether this is "make soak", which tries every combination and takes its time.
func soaking() bool { return os.Getenv("FIT_SOAK_KILLS") != "" }

// meeting is a project with profiles, a scripted model, and the agents that are needed.
type meeting struct {
	dir string
	con *console.Console
	out bytes.Buffer
	err bytes.Buffer

	mu       sync.Mutex
	requests []string // that the model got
}

// gather prepares a session. A program that is not installed is missing.
func gather(t *testing.T, script string, agents ...string) *meeting {
	t.Helper()
	bin, err := filepath.Abs("../agents/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{"PATH=" + agenttest.Path(bin), "HOME=" + t.TempDir(), "LANG=C.UTF-8"}
	for _, id := range agents {
		a, err := catalog.Default().Get(id)
		if err != nil {
			t.Fatal(err)
		}
		agenttest.Find(t, a, agent.Host{Environ: environ})
	}
	m := &meeting{dir: t.TempDir()}
	m.con = &console.Console{
		Stdin: strings.NewReader(""), Stdout: &m.out, Stderr: &m.err, Environ: environ, Dir: m.dir,
		Version: "test",
	}
	m.model(t, script)
	return m
}

// asProgram is the environment in which the test binary is the program itself. It knows the
// versions of agents that others have asked for, because some take seconds to tell theirs.
func (m *meeting) asProgram(t *testing.T) []string {
	t.Helper()
	return append(slices.Clone(m.con.Environ), asProgram+"=1", "XDG_CACHE_HOME="+userCache(t))
}

func userCache(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return cache
}

// model serves a script from now on.
func (m *meeting) model(t *testing.T, script string) {
	t.Helper()
	record := func(r scripted.Record) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.requests = append(m.requests, string(r.Body))
	}
	url := scriptedtest.ServeAll(t, map[string]string{"": script}, scripted.Options{LogBodies: true, OnRequest: record})
	m.con.Environ = append(m.con.Environ, "FIT_MODEL_URL="+url)
}

// asked is everything that the model was asked so far.
func (m *meeting) asked() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.requests, "\n")
}

func (m *meeting) write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// patience is longer than any session takes, on any machine.
const patience = "25m"

// hold runs the command, which must succeed.
func (m *meeting) hold(t *testing.T, args ...string) {
	t.Helper()
	began := time.Now()
	code := cli.Run(t.Context(), append([]string{"fit-harness"}, args...), m.con)
	t.Logf("took %s", time.Since(began).Round(time.Millisecond))
	if code != 0 {
		t.Fatalf("exit code %d\n%s\n%s\n%s", code, m.err.String(), m.out.String(), m.tail())
	}
}

func (m *meeting) tail() string {
	data, _ := os.ReadFile(filepath.Join(m.dir, "trace.ndjson"))
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	lines = lines[max(0, len(lines)-40):]
	for i, line := range lines {
		lines[i] = line[:min(len(line), 500)]
	}
	return strings.Join(lines, "\n")
}

// line is what the tests want to know of a line of the trace.
type line struct {
	source string
	Type   string `json:"type"`
	Kind   string `json:"kind"`
	From   string `json:"from"`
	To     string `json:"to"`
	Text   string `json:"text"`
	Agent  string `json:"agent"`
	// Runtime is who plays the agent.
	Runtime      string   `json:"runtime"`
	Verdict      string   `json:"verdict"`
	Redelivery   bool     `json:"redelivery"`
	Outcome      string   `json:"outcome"`
	Tokens       int64    `json:"tokens"`
	Turns        int      `json:"turns"`
	CostUSD      *float64 `json:"costUsd"`
	Participants []struct {
		Name   string `json:"name"`
		Turns  int    `json:"turns"`
		Tokens int64  `json:"tokens"`
		Gone   string `json:"gone"`
	} `json:"participants"`
}

// trace reads what was recorded; seq must count without gaps, and a line that a full disk has torn
// must be followed by one that says so.
func (m *meeting) trace(t *testing.T) []line {
	t.Helper()
	file, err := os.Open(filepath.Join(m.dir, "trace.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []line
	torn := false
	reader := trace.NewReader(file)
	for {
		read, err := reader.Next()
		if err != nil {
			break
		}
		if read.Problem != nil && !torn {
			torn = true
			continue
		}
		if read.Problem != nil || read.Seq != int64(len(all)) {
			t.Errorf("line %d: seq %d, %v", len(all), read.Seq, read.Problem)
		}
		l := line{source: read.Source}
		if read.Source == trace.Orchestrator {
			if err := json.Unmarshal(read.Event, &l); err != nil {
				t.Errorf("line %d: %v", len(all), err)
			}
		}
		if torn && l.Type != trace.TypeRecovered {
			t.Errorf("line %d comes after a torn one and is of type %s", len(all), l.Type)
		}
		torn = false
		all = append(all, l)
	}
	return all
}

// check looks for what every session must show: who was played by whom, what was answered, and a
// good end.
func (m *meeting) check(t *testing.T, players, answers map[string]string) {
	t.Helper()
	lines := m.trace(t)
	runtimes, said := map[string]string{}, map[string]string{}
	for _, l := range lines {
		switch {
		case l.Type == trace.TypeAgentStart:
			runtimes[l.Agent] = l.Runtime
		case l.Type == trace.TypeMessage && l.Kind == "answer":
			said[l.From] += l.Text
		case l.Type == trace.TypeProtocolViolation:
			t.Errorf("%s did not answer", l.Agent)
		}
	}
	for name, id := range players {
		if runtimes[name] != id {
			t.Errorf("%s was played by %q, not %s", name, runtimes[name], id)
		}
	}
	for name, text := range answers {
		if said[name] != text {
			t.Errorf("%s answered %q, not %q", name, said[name], text)
		}
	}
	last := lines[len(lines)-1]
	if last.Type != trace.TypeSummary || last.Verdict != "success" {
		t.Errorf("the last line is %+v", last)
	}
	for _, p := range last.Participants {
		if p.Turns == 0 || p.Tokens == 0 || p.Gone != "" {
			t.Errorf("%s: %d turns, %d tokens, gone %q", p.Name, p.Turns, p.Tokens, p.Gone)
		}
	}
	if t.Failed() {
		t.Log(m.err.String(), m.out.String(), m.tail())
	}
}
