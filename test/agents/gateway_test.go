package agents

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/gateway"
	modelcalls "github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
)

// realKey is the key of every vendor; behind the gateway, no agent sees it.
const realKey = "real-key-of-this-test-4711"

// TestTheRealKeyStaysInTheGateway: the model accepts the real key only, and the agent works; a
// command of the agent that looks at the environment and the arguments of every process does not
// find it, and it is in no file that the run leaves. What a program keeps in the user's home stays
// there. The agent is then cancelled in that command, and nothing of it is alive.
func TestTheRealKeyStaysInTheGateway(t *testing.T) {
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		look := "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c '[r]eal-key-of' >found.txt; " +
			"env >env.txt; [ -z \"$PI_CODING_AGENT_DIR\" ] || cat \"$PI_CODING_AGENT_DIR\"/* >>env.txt; " + slow
		r := newRig(t, a, `{"key": "`+realKey+`", "turns": [{"calls": [{"bash": `+strconv.Quote(look)+
			`, "timeout_ms": 300000}]}]}`)
		storeLogin(t, r)
		for _, name := range a.Info().Credentials {
			if strings.HasSuffix(name, "API_KEY") {
				r.config.Environ = append(r.config.Environ, name+"="+realKey)
			}
		}
		var visible, told bool
		tell := r.config.Started
		r.config.Started = func(s agent.Started) {
			visible, told = s.KeyVisible, true
			tell(s)
		}
		talk := r.start()
		r.interrupt(talk) // the model accepts no other key
		if err := talk.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if alive := r.survivors(); len(alive) > 0 {
			t.Errorf("left behind: %q", alive)
		}
		if !told || visible {
			t.Errorf("the key is said to be visible: %v, %v", told, visible)
		}
		seen := r.file("env.txt")
		if found := strings.TrimSpace(r.file("found.txt")); found != "0" || strings.Contains(seen, storedLogin) {
			t.Errorf("%s processes have the key; what the agent sees:\n%s", found, seen)
		}
		for _, dir := range []string{r.config.Dir, r.config.Home, filepath.Dir(r.trace)} {
			noFileHolds(t, dir, realKey)
		}
	})
}

// storedLogin is what pi keeps in the user's home.
const storedLogin = "stored-login-of-the-user-4712"

// storeLogin writes down a login in the home of a rig's user, with which alone the agent does not
// start.
func storeLogin(t *testing.T, r *rig) {
	t.Helper()
	if r.agent.Info().ID != "pi-agent" {
		return
	}
	for _, variable := range r.config.Environ {
		if home, found := strings.CutPrefix(variable, "HOME="); found {
			dir := filepath.Join(home, ".pi", "agent")
			login := `{"anthropic":{"type":"api_key","key":"` + storedLogin + `"},` +
				`"openai":{"type":"api_key","key":"` + storedLogin + `"}}`
			if err := errors.Join(os.MkdirAll(dir, 0o700),
				os.WriteFile(filepath.Join(dir, "auth.json"), []byte(login), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	err := r.agent.(agent.Checker).Check(agent.Config{Environ: r.config.Environ, Model: "claude-sonnet-4-5"})
	if err == nil || !strings.Contains(err.Error(), "ANTHROPIC_API_KEY") {
		t.Errorf("with a stored login only: %v; want the variable that is missing", err)
	}
}

func noFileHolds(t *testing.T, dir, secret string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(secret)) {
			t.Errorf("%s holds the key", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestInASandbox: a command of the agent sees no file outside of the workspace and none of the
// caller's secrets. In a network of its own, one that has got hold of the token of another cell is
// refused with it. Who runs the command makes no difference to the sandbox; that every agent works
// in one is in test/teams.
func TestInASandbox(t *testing.T) {
	python := testenv.NeedTool(t, "/usr/bin/python3")
	if err := sandbox.PrivateNetworkWorks(t.Context()); err != nil {
		testenv.Missing(t, "private networks do not work here: %v", err)
	}
	const program = `import sys, urllib.request, urllib.error
for token in sys.argv[2:]:
    try: print(urllib.request.urlopen(urllib.request.Request(sys.argv[1] + "/v1/models", headers={"X-Api-Key": token}), timeout=60).status)
    except urllib.error.HTTPError as e: print(e.code, e.read().decode())`
	eachAgentThat(t, oneOfEach, func(t *testing.T, a agent.Agent) {
		proxy, err := gateway.Start(gateway.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = proxy.Close() })
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("{}"))
		}))
		defer upstream.Close()
		other, err := proxy.Join(gateway.Member{
			Name:      "of another cell",
			Upstreams: []gateway.Upstream{{Protocol: gateway.Anthropic, URL: upstream.URL + "/v1"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		ask := []string{"-c", program, other.URL, other.Token}
		if said, err := exec.Command(python, ask...).CombinedOutput(); err != nil || string(said) != "200\n" {
			t.Fatalf("outside of the network, the token must be good: %v %s", err, said)
		}
		outside := filepath.Join(t.TempDir(), "outside")
		if err := os.WriteFile(outside, []byte("not yours"), 0o644); err != nil {
			t.Fatal(err)
		}
		look := "cat " + outside + " > seen || echo unseen > seen; env > variables; sh ask.sh >asked.txt"
		r := newRig(t, a, scriptOf(t, agenttest.Bash(look), agenttest.Says("Asked.")))
		command := "'" + strings.Join(append([]string{python}, ask...), "' '") + "'\n"
		command = strings.ReplaceAll(command, "'"+program+"'", "\"$(cat ask.py)\"")
		for name, content := range map[string]string{"ask.py": program, "ask.sh": command} {
			if err := os.WriteFile(filepath.Join(r.config.Dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r.config.Isolation = sandbox.Isolation{Kind: sandbox.IsolationBwrap, Writable: []string{r.config.Dir}}
		r.config.Network = sandbox.NetworkModel
		r.config.Gateway.Join = func(_ agent.Config, upstreams []gateway.Upstream) (*gateway.Seat, error) {
			return proxy.Join(gateway.Member{Name: lane, Upstreams: upstreams, OnCall: r.called})
		}
		result, _ := r.run("Ask")
		if !result.Success || result.Text != "Asked." {
			t.Errorf("outcome %q, text %q, error %v", result.Outcome, result.Text, result.Err)
		}
		if said := r.file("asked.txt"); !strings.HasPrefix(said, "401 ") ||
			!strings.Contains(said, "does not know this key") {
			t.Errorf("with the token of another cell: %q", said)
		}
		if seen := strings.TrimSpace(r.file("seen")); seen != "unseen" {
			t.Errorf("the agent saw a file outside of its workspace: %q", seen)
		}
		if variables := r.file("variables"); variables == "" || strings.Contains(variables, "hunter2") {
			t.Errorf("the agent's shell has the caller's secrets: %q", variables)
		}
	})
}

// seatAt sends the calls of a rig's agent to another upstream, and returns how they ended.
func (r *rig) seatAt(url string) func() []modelcalls.Call {
	var mu sync.Mutex
	var ended []modelcalls.Call
	proxy := &gateway.OnDemand{}
	r.t.Cleanup(func() { _ = proxy.Close() })
	r.config.Gateway.Join = func(_ agent.Config, upstreams []gateway.Upstream) (*gateway.Seat, error) {
		for i := range upstreams {
			upstreams[i].URL = url + "/v1"
		}
		return proxy.Join(gateway.Member{Name: lane, Upstreams: upstreams, OnCall: func(c modelcalls.Call) {
			mu.Lock()
			defer mu.Unlock()
			ended = append(ended, c)
			r.calls.Add(1)
		}})
	}
	return func() []modelcalls.Call {
		_ = proxy.Close() // waits for the last of them
		mu.Lock()
		defer mu.Unlock()
		return ended
	}
}

// TestAnAgentKilledInTheMiddleOfAStream: the upstream is let go, the call is recorded, and nothing
// of the agent is alive.
func TestAnAgentKilledInTheMiddleOfAStream(t *testing.T) {
	program := func(info agent.Info) bool { return hasProcess(info) && oneOfEach(info) }
	eachAgentThat(t, program, func(t *testing.T, a agent.Agent) {
		r := newRig(t, a, scriptOf(t, turn{"text": "Never said."}))
		left := make(chan struct{}, 100)
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(": a comment is all that ever comes\n\n"))
			_ = http.NewResponseController(w).Flush()
			_, _ = new(bytes.Buffer).ReadFrom(q.Body)
			r.killAll()
			<-q.Context().Done()
			left <- struct{}{}
		}))
		defer upstream.Close()
		ended := r.seatAt(upstream.URL)
		s := r.start()
		result := r.prompt(t.Context(), s, "Do it")
		if result.Success || result.Err == nil {
			t.Errorf("outcome %q, error %v", result.Outcome, result.Err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		<-left
		for _, c := range ended() {
			if c.Outcome != modelcalls.Disconnected {
				t.Errorf("recorded %+v", c)
			}
		}
		if alive := r.survivors(); len(alive) > 0 {
			t.Errorf("left behind: %q", alive)
		}
	})
}

// killAll kills every process that carries the run's mark.
func (r *rig) killAll() {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || !strings.Contains("\x00"+string(data), "\x00"+r.config.ExtraEnv[0]+"\x00") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
		}
	}
}
