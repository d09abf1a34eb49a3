package fleet

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/ledger"
)

// An agent in its sandbox reaches the hub over the loopback interface. The hub does not know it,
// and it finds no key with which it would: neither in files, nor in the environment, nor in
// processes.
func TestAnAgentCannotSpeakToTheHub(t *testing.T) {
	onBothServers(t, func(t *testing.T, w *world, _ *peer) {
		token := strings.TrimSpace(readFile(w, "hub", "worker.url"))
		at, err := url.Parse(token)
		if err != nil {
			t.Fatal(err)
		}
		host, port, err := net.SplitHostPort(at.Host)
		if err != nil {
			t.Fatal(err)
		}
		attack := fmt.Sprintf(`bash -c 'exec 3<>/dev/tcp/%[1]s/%[2]s
printf "CONNECT {\"verbose\":true}\r\n" >&3
timeout 5 cat <&3' >said.txt 2>&1
{ env; cat /proc/*/environ /proc/*/cmdline %[3]s/hub/*; } 2>/dev/null | tr '\0' '\n' >found.txt; true`,
			host, port, w.dir)
		turn := map[string]any{"calls": []any{map[string]any{"bash": attack}}}
		script, err := json.Marshal(map[string]any{"turns": []any{turn, map[string]any{"text": "Done."}}})
		if err == nil {
			err = os.WriteFile(filepath.Join(w.dir, "script.json"), script, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		m := w.machine(1, 0)
		w.start(m, []string{"FIT_FLEET=" + token}, "fleet", "work", "--slots", "2", "--name", m.name, "--dir",
			filepath.Join(m.tmp, "fleet")).says("at a time")
		coordinator := w.benchmark(nil, size{runs: 1}, "fleet", "--fleet", w.url, "--network", "host")
		<-coordinator.over
		records, _ := w.counted("fleet")
		for _, r := range records {
			if r.Verdict != ledger.Fail {
				t.Errorf("%s: %s", r.Key(), r.Verdict)
			}
			said := readFile(w, "fleet", r.RunDir, "cwd", "said.txt")
			if !strings.Contains(said, "Authorization Violation") || strings.Contains(said, "+OK") {
				t.Errorf("the hub said to the agent: %q", said)
			}
			found := readFile(w, "fleet", r.RunDir, "cwd", "found.txt")
			if !strings.Contains(found, "PATH=") {
				t.Errorf("the agent has not looked: %q", found)
			}
			if strings.Contains(found, at.User.Username()) || strings.Contains(found, "FIT_FLEET") {
				t.Error("the agent has found the worker's key")
			}
		}
		if len(records) != 4 {
			t.Errorf("%d cells count", len(records))
		}
	})
}

// A server that asks nobody who they are is none for a fleet: an agent in its sandbox could forge
// its own pass. Nor is one that others can listen to.
func TestAnInsecureServerIsRefused(t *testing.T) {
	w := newWorld(t)
	w.family(1)
	for want, c := range map[string]struct{ host, user string }{
		"asks nobody who they are": {host: "127.0.0.1"},
		"it has no TLS":            {w.address, "fleet:wrong-horse@"},
	} {
		if c.user != "" && !w.private {
			continue // it has only the loopback interface
		}
		at := "nats://" + c.user + w.externalServer(c.host, c.user)
		for _, args := range [][]string{
			{"fleet", "serve", "--nats", at},
			{"fleet", "work", "--fleet", at},
			{"fleet", "status", at},
			{"benchmark", "run", "--family", "family", "--arm", "a=agent:builtin", "--output", "out", "--fleet", at},
		} {
			refused := w.start(nil, nil, args...)
			<-refused.over
			said := refused.out.String()
			if !strings.Contains(said, want) || refused.cmd.ProcessState.ExitCode() == 0 ||
				strings.Contains(said, "horse") {
				t.Errorf("%v says %s", args[:2], said)
			}
		}
		accepted := w.start(nil, nil, "fleet", "serve", "--nats", at, "--insecure")
		<-accepted.over
		if said := accepted.out.String(); !strings.Contains(said, "the cluster is ready") {
			t.Errorf("it says %s", said)
		}
	}
}

// externalServer starts a NATS server without TLS, with a user or none, and returns its address.
func (w *world) externalServer(host, user string) string {
	w.t.Helper()
	program, port := testenv.NeedTool(w.t, "nats-server"), testenv.FreePort(w.t)
	args := []string{"-js", "-sd", filepath.Join(w.dir, "store"+port), "-a", host, "-p", port}
	if name, password, found := strings.Cut(strings.TrimSuffix(user, "@"), ":"); found {
		args = append(args, "--user", name, "--pass", password)
	}
	server := exec.Command(program, args...)
	if err := server.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	at := net.JoinHostPort(host, port)
	eventually(w.t, "the server listens", func() bool {
		conn, err := net.Dial("tcp", at)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return at
}
