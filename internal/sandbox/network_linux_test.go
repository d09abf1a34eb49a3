package sandbox_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
)

// service answers every connection on a port with a word, until it is killed.
const service = `/usr/bin/python3 -c '
import socket, sys
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen()
print("up", flush=True)
while True:
    c, _ = s.accept(); c.sendall(sys.argv[2].encode() + b"\n"); c.close()
' `

// client prints what a port answers, or "no".
func client(port int) string {
	return fmt.Sprintf("bash -c '(cat </dev/tcp/127.0.0.1/%d) 2>/dev/null || echo no'", port)
}

func needPrivateNetwork(t *testing.T) {
	t.Helper()
	testenv.NeedTool(t, "bash")
	testenv.NeedTool(t, "/usr/bin/python3")
	if c := sandbox.Detect(t.Context()); !c.PrivateNetwork.OK {
		testenv.Missing(t, "private networks do not work here: %s (%s)", c.PrivateNetwork.Detail, c.PrivateNetwork.Fix)
	}
}

func newNetwork(t *testing.T) *sandbox.PrivateNetwork {
	t.Helper()
	network, err := sandbox.NewPrivateNetwork()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(network.Close)
	return network
}

func inNetwork(network *sandbox.PrivateNetwork, script string) sandbox.SpawnSpec {
	spec := shell(script)
	spec.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
	spec.Dir, spec.Isolation = "/", sandbox.Isolation{Kind: sandbox.IsolationBwrap, Join: network}
	return spec
}

// serve runs a service in a network until the test ends.
func serve(t *testing.T, network *sandbox.PrivateNetwork, port int, word string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	up, done := make(chan struct{}), make(chan struct{})
	out := &trigger{text: "up\n", fire: func() { close(up) }}
	spec := inNetwork(network, service+strconv.Itoa(port)+" "+word)
	spec.Grace = -1
	var errs bytes.Buffer
	go func() {
		defer close(done)
		_, _ = sandbox.Local{}.Spawn(ctx, spec, out, &errs)
	}()
	t.Cleanup(func() { cancel(); <-done })
	select {
	case <-up:
	case <-done:
		t.Fatalf("the service has ended: %s", errs.String())
	}
}

// hostService answers on a port of the host.
func hostService(t *testing.T, word string) (port int) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go answer(listener, word)
	return listener.Addr().(*net.TCPAddr).Port
}

func answer(listener net.Listener, word string) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, word+"\n")
		conn.Close()
	}
}

func TestProgramsShareAPrivateNetworkAndReachNothingElse(t *testing.T) {
	needPrivateNetwork(t)
	outside := hostService(t, "host")
	network := newNetwork(t)
	serve(t, network, 4711, "inside")
	for name, check := range map[string]struct{ script, want string }{
		"the service of the network": {client(4711), "inside\n"},
		"a listener of the host":     {client(outside), "no\n"},
		"only a loopback":            {`cut -d: -f1 -s /proc/net/dev | tr -d " " | sort | xargs`, "lo\n"},
		"no route":                   {`tail -n +2 /proc/net/route | wc -l`, "0\n"},
		"no way out":                 {`bash -c '(exec 3<>/dev/tcp/192.0.2.1/80) 2>&1' | grep -o "unreachable" | sort -u`, "unreachable\n"},
		"no privileges":              {`grep CapEff /proc/self/status | tr -d '\t'`, "CapEff:0000000000000000\n"},
		"no way to change it":        {`if command -v ip >/dev/null; then ip link add x type dummy 2>/dev/null || echo no; else echo no; fi`, "no\n"},
		"no other descriptor":        {`ls /proc/self/fd | tr '\n' ' '`, "0 1 2 3 "},
	} {
		t.Run(name, func(t *testing.T) {
			if _, out, errs := run(t, sandbox.Local{}, inNetwork(network, check.script)); out != check.want {
				t.Errorf("printed %q and %q, want %q", out, errs, check.want)
			}
		})
	}
	spec := inNetwork(network, client(outside))
	if spec.Isolation.Network = true; true {
		if _, out, _ := run(t, sandbox.Local{}, spec); out != "host\n" {
			t.Errorf("a program with the network does not reach the host: %q", out)
		}
	}
}

func TestTwoPrivateNetworksUseTheSamePort(t *testing.T) {
	needPrivateNetwork(t)
	for _, word := range []string{"one", "two"} {
		network := newNetwork(t)
		serve(t, network, 4712, word)
		defer func() {
			if _, out, errs := run(t, sandbox.Local{}, inNetwork(network, client(4712))); out != word+"\n" {
				t.Errorf("network %s answers %q, %q", word, out, errs)
			}
		}()
	}
}

func TestWeReachIntoAPrivateNetworkAndAnswerInIt(t *testing.T) {
	needPrivateNetwork(t)
	network := newNetwork(t)
	if _, err := network.Dial(t.Context(), 4713); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
	serve(t, network, 4713, "inside")
	conn, err := network.Dial(t.Context(), 4713)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, err := io.ReadAll(conn); string(got) != "inside\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	listener, err := network.Listen(t.Context(), 4714)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go answer(listener, "outside")
	if _, out, errs := run(t, sandbox.Local{}, inNetwork(network, client(4714))); out != "outside\n" {
		t.Errorf("%q, %q", out, errs)
	}
	if _, err := network.Listen(t.Context(), 4713); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a port that is taken: %v", err)
	}
}

func TestProgramsInAPrivateNetworkEndAsAnywhere(t *testing.T) {
	needPrivateNetwork(t)
	network := newNetwork(t)
	for script, want := range map[string]sandbox.SpawnResult{
		"exit 7": {ExitCode: 7}, "kill -9 $$": {ExitCode: 137},
		"echo out; echo err >&2": {StdoutBytes: 4, StderrBytes: 4},
	} {
		t.Run(script, func(t *testing.T) {
			result, _, _ := run(t, sandbox.Local{}, inNetwork(network, script))
			if result.ExitCode != want.ExitCode || result.StdoutBytes != want.StdoutBytes ||
				result.StderrBytes != want.StderrBytes || len(result.Unkillable) > 0 {
				t.Errorf("%+v", result)
			}
		})
	}
	marker := newMarker(t)
	spec := inNetwork(network, fmt.Sprintf("setsid sleep %s & sleep %s & echo up; wait", marker, marker))
	spec.Grace = -1
	spawnUntilUp(t, sandbox.Local{}, spec)
	mustBeGone(t, marker)
	if _, err := (sandbox.Local{Containment: sandbox.ProcessGroup}).Spawn(t.Context(), inNetwork(network, "true"), nil,
		nil); err == nil {
		t.Error("a process group cannot join a network, and says nothing")
	}
	if spec := inNetwork(network, "true"); true {
		spec.Isolation.Kind = sandbox.IsolationNone
		if _, err := (sandbox.Local{}).Spawn(t.Context(), spec, nil, nil); err == nil {
			t.Error("a program without isolation cannot join a network, and nothing says so")
		}
	}
	network.Close()
	if _, err := (sandbox.Local{}).Spawn(t.Context(), inNetwork(network, "true"), nil, nil); err == nil {
		t.Error("a program was started in a network that is closed")
	}
}

// playNetwork is a harness that has a service in a private network.
func playNetwork(marker string) int {
	network, err := sandbox.NewPrivateNetwork()
	if err != nil {
		fmt.Println("no network:", err)
		return 0
	}
	script := fmt.Sprintf("grep CapEff /proc/self/status; setsid sleep %s & echo namespace $(readlink /proc/self/ns/net); %s", marker, service+"4715 x"+marker)
	result, err := sandbox.Local{}.Spawn(context.Background(), inNetwork(network, script), os.Stdout, os.Stdout)
	fmt.Println("ended:", result.ExitCode, err)
	return 0
}

// inNamespace lists the processes that are in a network namespace.
func inNamespace(name string) []string {
	var found []string
	links, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == name {
			found = append(found, link)
		}
	}
	return found
}

func TestNothingOfAPrivateNetworkOutlivesAKilledHarness(t *testing.T) {
	needPrivateNetwork(t)
	users := map[string]testenv.User{"an ordinary user": testenv.OrdinaryUser(t)}
	if os.Getuid() == 0 {
		users["root"] = testenv.ThisUser(t)
	}
	for name, user := range users {
		t.Run(name, func(t *testing.T) {
			marker := newMarker(t)
			cmd := exec.Command(user.Binary, marker)
			cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", []string{
				"PATH=/usr/local/bin:/usr/bin:/bin",
				roleVariable + "=network", quickExit,
			}, user.Attributes
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			namespace := ""
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				said.WriteString(lines.Text() + "\n")
				if after, ok := strings.CutPrefix(lines.Text(), "namespace "); ok {
					namespace = after
				}
				if lines.Text() == "up" {
					break
				}
			}
			if user.ID != 0 && strings.HasPrefix(said.String(), "no network") &&
				strongestFor(t, user) != sandbox.PIDNamespace {
				_ = cmd.Wait()
				testenv.Missing(t, "users may not make user namespaces here: %s", said.String())
			}
			if namespace == "" || len(inNamespace(namespace)) < 2 ||
				!strings.Contains(said.String(), "CapEff:\t0000000000000000") {
				t.Errorf("the service did not come up: %s, in its network: %v", said.String(), inNamespace(namespace))
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, out)
			_ = cmd.Wait()
			eventually(t, "no process is left in the network",
				func() bool { return len(inNamespace(namespace)) == 0 && len(alive(marker)) == 0 })
		})
	}
}
