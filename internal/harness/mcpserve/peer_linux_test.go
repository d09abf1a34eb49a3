package mcpserve_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/harness/mcpserve"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/trace"
)

// traced opens the tools of a session whose trace the test can read.
func traced(t *testing.T, serving mcpserve.Config) (harness.Connector, agent.MCPServer, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	connector := serve(t, harness.DispatcherConfig{
		Mode:         harness.ModeFacilitate,
		Participants: two(),
		Trace:        trace.NewWriter(&out, trace.Config{}),
	}, serving)
	servers, err := connector.Servers("facilitator", agent.Info{})
	if err != nil {
		t.Fatal(err)
	}
	return connector, servers[0], &out
}

// environment is that of a program which an agent starts for a tool server.
func environment(server agent.MCPServer) []string {
	list := os.Environ()
	for name, value := range server.Env {
		list = append(list, name+"="+value)
	}
	return list
}

// A program that the lead's agent has started reaches the lead's tools through the relay, directly
// or in a sandbox that shows nothing but the socket and the program.
func TestTheAgentsOwnProgramsAreServed(t *testing.T) {
	for _, kind := range []string{sandbox.IsolationNone, sandbox.IsolationBwrap} {
		t.Run(kind, func(t *testing.T) {
			if kind == sandbox.IsolationBwrap {
				needBwrap(t)
			}
			connector, server, out := traced(t, mcpserve.Config{})
			fromRelay, relayOut := io.Pipe()
			relayIn, toRelay := io.Pipe()
			done := make(chan error, 1)
			go func() {
				_, err := connector.Spawner("facilitator", sandbox.NewSpawner()).Spawn(t.Context(), sandbox.SpawnSpec{
					Argv:  append([]string{server.Command}, server.Args...),
					Dir:   "/",
					Env:   environment(server),
					Stdin: relayIn,
					Isolation: sandbox.Isolation{
						Kind: kind, Network: true,
						ReadOnly: []string{server.Socket, server.Command},
					},
				}, relayOut, os.Stderr)
				relayOut.CloseWithError(io.EOF)
				done <- err
			}()
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: fromRelay, Writer: toRelay}, nil)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if text, isError := call(t, session, "RollCall", map[string]any{}); isError ||
				!strings.Contains(text, `"name":"alice","role":"explorer"`) {
				t.Errorf("RollCall: %s", text)
			}
			_ = session.Close()
			if err := <-done; err != nil {
				t.Errorf("the relay ended with %v", err)
			}
			if strings.Contains(out.String(), trace.TypeCallRefused) {
				t.Errorf("a call was refused:\n%s", out)
			}
		})
	}
}

func needBwrap(t *testing.T) {
	t.Helper()
	if works := sandbox.DetectBwrap(t.Context()).Bwrap; !works.OK {
		if os.Getenv("CI") != "" {
			t.Fatalf("bubblewrap does not work: %s", works.Detail)
		}
		t.Skipf("bubblewrap does not work: %s", works.Detail)
	}
}

// A program that another participant's agent has started knows the lead's socket, or address and
// token, and is refused all the same.
func TestACallOfAnotherProcessIsRefusedAndTraced(t *testing.T) {
	conclude := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Conclude","arguments":` +
		`{"verdict":"success","summary":"forged by alice"}}}`
	for name, serving := range map[string]mcpserve.Config{"socket": {}, "http": {HTTP: true}} {
		t.Run(name, func(t *testing.T) {
			connector, server, out := traced(t, serving)
			spec := sandbox.SpawnSpec{Dir: "/", Env: environment(server), Stdin: strings.NewReader(conclude + "\n")}
			if serving.HTTP {
				spec.Argv = []string{os.Args[0], server.Headers["Authorization"]}
				spec.Env = append(spec.Env, postVariable+"="+server.URL)
			} else {
				spec.Argv = append([]string{server.Command}, server.Args...)
			}
			var answer bytes.Buffer
			alice := connector.Spawner("alice", sandbox.NewSpawner())
			if _, err := alice.Spawn(context.Background(), spec, &answer, os.Stderr); err != nil {
				t.Fatal(err)
			}
			if err := connector.Close(); err != nil { // it writes no more
				t.Error(err)
			}
			if strings.Contains(answer.String(), "over") || strings.Contains(out.String(), "forged by alice") {
				t.Errorf("alice concluded the session: %s\n%s", answer.String(), out)
			}
			if !strings.Contains(out.String(), `"type":"call_refused","agent":"facilitator"`) ||
				!strings.Contains(out.String(), "tried to call tools as facilitator") {
				t.Errorf("the refusal is not in the trace:\n%s", out)
			}
		})
	}
}

// The lead runs a program that the agent under judgement wrote, in its own tree of processes: it
// finds the lead's socket and starts the relay like the lead's agent. The agent was there first,
// and only it is served.
func TestAProgramThatTheLeadRunsIsRefused(t *testing.T) {
	connector, server, out := traced(t, mcpserve.Config{})
	// The agent's own relay answers first; then the agent runs the program.
	script := `exec 3>&1; (printf '%s\n' "$HELLO" "$ROLLCALL"; read -r stop <"$GO") | "$0" "$@" | { read -r a; read -r b; echo "$b" >&3
printf '%s\n' "$HELLO" "$CONCLUDE" | "$0" "$@" >&3; echo go >"$GO"; cat >/dev/null; }`
	fifo := filepath.Join(t.TempDir(), "go")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	call := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`
	environment := append(environment(server), "GO="+fifo,
		`HELLO={"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},`+
			`"clientInfo":{"name":"x","version":"1"}}}`,
		"ROLLCALL="+fmt.Sprintf(call, 2, "RollCall", "{}"),
		"CONCLUDE="+fmt.Sprintf(call, 3, "Conclude", `{"verdict":"success","summary":"forged by alice"}`))
	var answer bytes.Buffer
	_, err := connector.Spawner("facilitator", sandbox.NewSpawner()).Spawn(t.Context(), sandbox.SpawnSpec{
		Argv: append([]string{"sh", "-c", script, server.Command}, server.Args...),
		Dir:  "/",
		Env:  environment,
	}, &answer, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	if err := connector.Close(); err != nil { // it writes no more
		t.Error(err)
	}
	if !strings.Contains(answer.String(), "explorer") {
		t.Errorf("the agent itself was not served: %s\n%s", answer.String(), out)
	}
	if strings.Contains(out.String(), "forged by alice") {
		t.Errorf("the program concluded the session: %s\n%s", answer.String(), out)
	}
	if !strings.Contains(out.String(), "facilitator's agent calls tools from another process") {
		t.Errorf("the refusal is not in the trace:\n%s", out)
	}
}
