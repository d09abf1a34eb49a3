package workspace

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
)

// servicePreflight starts a service that answers with its word, and on "reach PORT" with what that
// port of its own loopback answers.
const servicePreflight = `#!/bin/sh
cat >"$TMPDIR/service.py" <<'END'
import socket, sys
def ask(port):
    try:
        with socket.create_connection(("127.0.0.1", port), 60) as c:
            return c.recv(100)
    except OSError:
        return b"nothing\n"
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen()
open(sys.argv[2], "w").close()
while True:
    c, _ = s.accept()
    line = c.makefile().readline().split()
    c.sendall(ask(int(line[1])) if len(line) == 2 else b"service of " + sys.argv[3].encode() + b"\n"); c.close()
END
/usr/bin/python3 "$TMPDIR/service.py" "$PORT" "$TMPDIR/up" "$AGENT_CWD" &
for i in $(seq 2000); do [ -e "$TMPDIR/up" ] && exit 0; sleep 0.05; done
exit 1
`

// asks is a program that prints what a port answers to a line, or "nothing".
func asks(port int, line string) []string {
	return []string{"/usr/bin/python3", "-c", `
import socket, sys
try:
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 60) as c:
        c.sendall(sys.argv[2].encode() + b"\n"); print(c.makefile().readline(), end="")
except OSError:
    print("nothing")
`, fmt.Sprint(port), line}
}

// hostListener is something on the host that graders have no business with.
func hostListener(t *testing.T) (port int) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "host\n")
			conn.Close()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

func needPrivateNetwork(t *testing.T) {
	t.Helper()
	needBwrap(t)
	testenv.NeedTool(t, "/usr/bin/python3")
	if err := privateNetworkWorks(t.Context()); err != nil {
		testenv.Missing(t, "%v", err)
	}
}

// serviceSpace is the workspace of a task with a service, which is up.
func serviceSpace(t *testing.T, yaml string, dir func(w *Workspace) string) *Workspace {
	t.Helper()
	files := map[string]string{"tasks/one/hooks/preflight.sh": servicePreflight, "workdir/hello": "x"}
	if yaml != "" {
		files["tasks/one/task.yaml"] = yaml
	}
	fam, one := family(t, files)
	w := prepare(t, Config{Family: fam, Task: one, Ports: &Ports{}, Isolation: sandbox.IsolationBwrap})
	if result, err := w.Preflight(t.Context(), dir(w)); err != nil || !result.OK() {
		t.Fatalf("%+v, %v", result, err)
	}
	return w
}

func forAgent(*Workspace) string { return "" }

// onHost is what a program with the host's network sees.
func onHost(w *Workspace) Place {
	place := w.Agent()
	place.Isolation.Network = true
	return place
}

func expect(t *testing.T, what string, place Place, argv []string, want string) {
	t.Helper()
	if _, out := run(t, place, argv...); out != want {
		t.Errorf("%s: got %q, want %q", what, out, want)
	}
}

func TestGradersReachTheServiceAndNothingElse(t *testing.T) {
	needPrivateNetwork(t)
	outside := hostListener(t)
	w := serviceSpace(t, "", forAgent)
	service := "service of " + w.Dir + "\n"
	expect(t, "the agent reaches the service", onHost(w), asks(w.Port, ""), service)
	expect(t, "the agent keeps the network", onHost(w), asks(outside, ""), "host\n")

	if _, err := w.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, "after the agent's end the host does not reach the service", onHost(w), asks(w.Port, ""), "nothing\n")
	c, err := w.Copy(t.Context(), CopyConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for name, place := range map[string]Place{"hook": w.Hook(c.Dir), "hidden tests": w.Grader(c)} {
		expect(t, name+" reach the service", place, asks(w.Port, ""), service)
		expect(t, name+" do not reach the host", place, asks(outside, ""), "nothing\n")
		expect(t, name+" do not reach the host through the service", place, asks(w.Port, fmt.Sprint("reach ", outside)),
			"nothing\n")
		expect(t, name+" have no route", place, []string{"sh", "-c", "tail -n +2 /proc/net/route"}, "")
	}
	if w.GraderNetwork() || w.ServiceNetwork() != servicesPrivate {
		t.Errorf("the record would say %v, %q", w.GraderNetwork(), w.ServiceNetwork())
	}
	namespace := readNamespace(t, w.Grader(c))
	w.StopServices()
	if left := processesIn(namespace); len(left) > 0 {
		t.Errorf("left in the private network: %v", left)
	}
}

// enclosed is the place of an agent that has a network of its own.
func enclosed(t *testing.T, w *Workspace) Place {
	t.Helper()
	w.cfg.AgentNetwork = sandbox.NetworkModel
	network, err := sandbox.NewPrivateNetwork()
	if err != nil {
		t.Fatal(err)
	}
	port, serve := w.ServiceDoor()
	listener, err := network.Listen(t.Context(), port)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- serve(listener) }()
	t.Cleanup(func() {
		listener.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		network.Close()
	})
	place := w.Agent()
	place.Isolation.Join = network
	return place
}

func TestAnAgentWithANetworkOfItsOwnReachesItsService(t *testing.T) {
	needPrivateNetwork(t)
	for name, yaml := range map[string]string{
		"in private":                   "",
		"on the host":                  "network: {preflight: true}\n",
		"with the graders on the host": "network: {grader: true}\n",
	} {
		t.Run(name, func(t *testing.T) {
			outside := hostListener(t)
			w := serviceSpace(t, yaml, func(w *Workspace) string {
				w.cfg.AgentNetwork = sandbox.NetworkModel
				return ""
			})
			if conn, err := net.Dial("tcp", loopback(w.Port)); err == nil && yaml == "" {
				conn.Close()
				t.Error("the port of the attempt answers on the host, where the agent is not")
			}
			place := enclosed(t, w)
			expect(t, "its service", place, asks(w.Port, ""), "service of "+w.Dir+"\n")
			expect(t, "anything else", place, asks(outside, ""), "nothing\n")
			if w.toServices != nil {
				t.Error("there is a way from the host to the service")
			}
		})
	}
}

// The agents of two attempts are both on the host's network, and so is everything else of the
// machine.
func TestAServiceAnswersItsOwnAgentOnly(t *testing.T) {
	needPrivateNetwork(t)
	one, two := serviceSpace(t, "", forAgent), serviceSpace(t, "", forAgent)
	for _, w := range []*Workspace{one, two} {
		expect(t, "its own agent", onHost(w), asks(w.Port, ""), "service of "+w.Dir+"\n")
	}
	if _, out := run(t, onHost(two), asks(one.Port, "")...); strings.Contains(out, "service") {
		t.Errorf("the agent of another attempt gets %q", out)
	}
	conn, err := net.Dial("tcp", loopback(one.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "\n")
	if answer, _ := io.ReadAll(conn); len(answer) > 0 {
		t.Errorf("a program of the machine gets %q", answer)
	}
}

func TestTwoAttemptsMayUseOnePort(t *testing.T) {
	needPrivateNetwork(t)
	port := 0
	aside := func(w *Workspace) string {
		c, err := w.Copy(t.Context(), CopyConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if port == 0 {
			port = w.Port
		}
		w.Port = port
		return c.Dir
	}
	one, two := serviceSpace(t, "", aside), serviceSpace(t, "", aside)
	for _, w := range []*Workspace{one, two} {
		c, err := w.Copy(t.Context(), CopyConfig{})
		if err != nil {
			t.Fatal(err)
		}
		_, out := run(t, w.Grader(c), asks(port, "")...)
		if !strings.HasPrefix(out, "service of "+w.Root+"/") {
			t.Errorf("the graders of %s talk to %q", w.Root, out)
		}
		expect(t, "without an agent the host does not reach the service", onHost(w), asks(port, ""), "nothing\n")
	}
}

func TestServicesWithTheNetworkAreReachedByThePortOnly(t *testing.T) {
	needPrivateNetwork(t)
	outside := hostListener(t)
	w := serviceSpace(t, "network: {preflight: true}\n", forAgent)
	service := "service of " + w.Dir + "\n"
	expect(t, "the agent reaches the service", onHost(w), asks(w.Port, ""), service)
	if _, err := w.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := w.Copy(t.Context(), CopyConfig{})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "hidden tests reach the service", w.Grader(c), asks(w.Port, ""), service)
	expect(t, "hidden tests do not reach the host", w.Grader(c), asks(outside, ""), "nothing\n")
	expect(t, "the service has the network", w.Grader(c), asks(w.Port, fmt.Sprint("reach ", outside)), "host\n")
	if w.GraderNetwork() || w.ServiceNetwork() != servicesHost {
		t.Errorf("the record would say %v, %q", w.GraderNetwork(), w.ServiceNetwork())
	}
}

func TestATaskMayGiveItsGradersTheNetwork(t *testing.T) {
	needPrivateNetwork(t)
	outside := hostListener(t)
	w := serviceSpace(t, "network: {grader: true}\n", forAgent)
	c, err := w.Copy(t.Context(), CopyConfig{})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "hidden tests reach the service", w.Grader(c), asks(w.Port, ""), "service of "+w.Dir+"\n")
	expect(t, "hidden tests reach the host", w.Grader(c), asks(outside, ""), "host\n")
	if !w.GraderNetwork() || w.ServiceNetwork() != servicesHost {
		t.Errorf("the record would say %v, %q", w.GraderNetwork(), w.ServiceNetwork())
	}
}

func readNamespace(t *testing.T, place Place) string {
	t.Helper()
	_, out := run(t, place, "readlink", "/proc/self/ns/net")
	return strings.TrimSpace(out)
}

func processesIn(namespace string) []string {
	var found []string
	links, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == namespace {
			found = append(found, link)
		}
	}
	return found
}
