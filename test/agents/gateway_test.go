package agents

import (
	"bytes"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/gateway"
	modelcalls "github.com/fit-eval/fit/gateway/calls"
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
	hasProcess := func(info agent.Info) bool { return strings.HasPrefix(info.InstallHint, "npm ") }
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
