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

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/gateway"
	modelcalls "github.com/fit-eval/fit/gateway/calls"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/sandbox"
)

// realKey is the key of every vendor; behind the gateway, no agent sees it.
const realKey = "real-key-of-this-test-4711"

// TestTheRealKeyStaysInTheGateway: the model accepts the real key only, and the agent works; a
// command of the agent that looks at the environment and the arguments of every process does not
// find it, and it is in no file that the run leaves.
func TestTheRealKeyStaysInTheGateway(t *testing.T) {
	eachAgent(t, func(t *testing.T, a agent.Agent) {
		look := "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c '[r]eal-key-of' >found.txt; " +
			"env >env.txt; echo looked"
		r := newRig(t, a, `{"key": "`+realKey+`", "turns": [{"calls": [{"bash": `+strconv.Quote(look)+`}]}, {"text": "Looked."}]}`)
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
		result, _ := r.run("Look around")
		if !result.Success || result.Text != "Looked." {
			t.Fatalf("outcome %q, text %q, error %v", result.Outcome, result.Text, result.Err)
		}
		if !told || visible {
			t.Errorf("the key is said to be visible: %v, %v", told, visible)
		}
		if found := strings.TrimSpace(r.file("found.txt")); found != "0" {
			t.Errorf("%s processes have the key; the agent's environment:\n%s", found, r.file("env.txt"))
		}
		for _, dir := range []string{r.config.Dir, r.config.Home, filepath.Dir(r.trace)} {
			noFileHolds(t, dir, realKey)
		}
	})
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

// TestTheTokenOfAnotherCellIsWorthNothing: in a network of its own, a command of the agent that has
// got hold of the token of another cell is refused with it.
func TestTheTokenOfAnotherCellIsWorthNothing(t *testing.T) {
	python := testenv.NeedTool(t, "/usr/bin/python3")
	if found := sandbox.Detect(t.Context()); !found.PrivateNetwork.OK {
		testenv.Missing(t, "private networks do not work here: %s", found.PrivateNetwork.Detail)
	}
	const program = `import sys, urllib.request, urllib.error
for token in sys.argv[2:]:
    try: print(urllib.request.urlopen(urllib.request.Request(sys.argv[1] + "/v1/models", headers={"X-Api-Key": token}), timeout=60).status)
    except urllib.error.HTTPError as e: print(e.code, e.read().decode())`
	eachAgent(t, func(t *testing.T, a agent.Agent) {
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
		asking := turn{"calls": []turn{call("bash", "sh ask.sh >asked.txt")}}
		r := newRig(t, a, scriptOf(t, asking, turn{"text": "Asked."}))
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
	})
}

// TestAStoredLoginOfPiIsNotUsed: what pi keeps in the user's home stays there; the model gets the
// key of the environment, and pi a token.
func TestAStoredLoginOfPiIsNotUsed(t *testing.T) {
	isPi := func(info agent.Info) bool { return info.ID == "pi-agent" }
	eachAgentThat(t, isPi, func(t *testing.T, a agent.Agent) {
		const stored = "stored-login-of-the-user-4712"
		r := newRig(t, a, `{"key": "`+realKey+`", "turns": [{"calls": [{"bash": "env >env.txt; cat $PI_CODING_AGENT_DIR/* >>env.txt"}]}, {"text": "Looked."}]}`)
		for _, variable := range r.config.Environ {
			if home, found := strings.CutPrefix(variable, "HOME="); found {
				dir := filepath.Join(home, ".pi", "agent")
				login := `{"anthropic":{"type":"api_key","key":"` + stored + `"},` +
					`"openai":{"type":"api_key","key":"` + stored + `"}}`
				if err := errors.Join(os.MkdirAll(dir, 0o700),
					os.WriteFile(filepath.Join(dir, "auth.json"), []byte(login), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
		}
		err := a.(agent.Checker).Check(agent.Config{Environ: r.config.Environ, Model: "claude-sonnet-4-5"})
		if err == nil || !strings.Contains(err.Error(), "ANTHROPIC_API_KEY") {
			t.Errorf("with a stored login only: %v; want the variable that is missing", err)
		}
		r.config.Environ = append(r.config.Environ, "ANTHROPIC_API_KEY="+realKey, "OPENAI_API_KEY="+realKey)
		result, _ := r.run("Look around") // the model accepts no other key
		if !result.Success || result.Text != "Looked." {
			t.Errorf("outcome %q, text %q, error %v", result.Outcome, result.Text, result.Err)
		}
		for _, secret := range []string{stored, realKey} {
			if seen := r.file("env.txt"); strings.Contains(seen, secret) || !strings.Contains(seen, "fit-") {
				t.Errorf("the agent sees %s:\n%s", secret, seen)
			}
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
	eachAgentThat(t, hasProcess, func(t *testing.T, a agent.Agent) {
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
