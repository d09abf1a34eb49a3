package mcpserve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/harness/harnesstest"
	"github.com/fit-eval/fit/internal/harness/mcpserve"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(postVariable); url != "" {
		os.Exit(post(url))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(int) {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	}))
}

// postVariable makes this program post its input to an address, with its first argument as the
// Authorization.
const postVariable = "FIT_TEST_POST"

func post(url string) int {
	request, err := http.NewRequest(http.MethodPost, url, os.Stdin)
	if err != nil {
		return 1
	}
	request.Header.Set("Authorization", os.Args[1])
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 1
	}
	_, _ = io.Copy(os.Stdout, response.Body)
	return 0
}

// serve opens the tools of a session without a loop.
func serve(t *testing.T, cfg harness.DispatcherConfig, serving mcpserve.Config) harness.Connector {
	t.Helper()
	d, err := harness.NewDispatcher(cfg)
	if err != nil {
		t.Fatal(err)
	}
	connector, err := mcpserve.NewKeyring(len(cfg.Participants) + 1).Connect(serving)(d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := connector.Close(); err != nil {
			t.Error(err)
		}
	})
	return connector
}

// callIDKey is where the agents of these tests put the ids of calls.
const callIDKey = "some-agent/theCall"

// dial connects as a participant.
func dial(t *testing.T, connector harness.Connector, participant string, opts *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	servers, err := connector.Servers(participant, agent.Info{CallIDKey: callIDKey})
	if err != nil {
		t.Fatal(err)
	}
	var session *mcp.ClientSession
	if servers[0].URL != "" {
		session, err = connect(t, servers[0].URL, servers[0].Headers["Authorization"], opts)
	} else {
		session, err = connectSocket(t, servers[0].Socket, opts)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func connectSocket(t *testing.T, socket string, opts *mcp.ClientOptions) (*mcp.ClientSession, error) {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts)
	return client.Connect(t.Context(), &mcp.IOTransport{Reader: conn, Writer: conn}, nil)
}

func connect(t *testing.T, url, authorization string, opts *mcp.ClientOptions) (*mcp.ClientSession, error) {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts)
	return client.Connect(t.Context(),
		&mcp.StreamableClientTransport{
			Endpoint:   url,
			HTTPClient: &http.Client{Transport: header{"Authorization": authorization}}, DisableStandaloneSSE: true,
		},
		nil)
}

type header map[string]string

func (h header) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func call(t *testing.T, s *mcp.ClientSession, tool string, arguments any) (text string, isError bool) {
	t.Helper()
	result, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return textOf(result), result.IsError
}

func textOf(result *mcp.CallToolResult) string {
	return result.Content[0].(*mcp.TextContent).Text
}

func two() []harness.AgentConfig {
	return []harness.AgentConfig{{Name: "alice", Role: "explorer"}, {Name: "bob", Role: "tester"}}
}

func TestEveryRoleSeesExactlyItsTools(t *testing.T) {
	participants := map[harness.Mode][]harness.AgentConfig{
		harness.ModeFacilitate: two(), harness.ModeDiscuss: two(), harness.ModeSupervise: {{Name: "agent"}},
		harness.ModeJudge: nil,
	}
	for _, role := range []struct {
		mode  harness.Mode
		name  string
		tools string
	}{
		{harness.ModeFacilitate, "facilitator", "Announce Answer Ask Conclude RollCall"},
		{harness.ModeFacilitate, "alice", "Announce Answer Ask RequestForComment RollCall"},
		{harness.ModeSupervise, "supervisor", "Announce Answer Ask Conclude RollCall"},
		{harness.ModeSupervise, "agent", "Announce Answer Ask RollCall"},
		{harness.ModeDiscuss, "lead", "Acknowledge Adjourn Announce Answer Ask Recess RollCall"},
		{harness.ModeDiscuss, "bob", "Acknowledge Announce Answer Ask RequestForComment RollCall"},
		{harness.ModeJudge, "judge", "Conclude"},
	} {
		t.Run(string(role.mode)+" "+role.name, func(t *testing.T) {
			connector := serve(t, harness.DispatcherConfig{Mode: role.mode, Participants: participants[role.mode]},
				mcpserve.Config{})
			list, err := dial(t, connector, role.name, nil).ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range list.Tools {
				names = append(names, tool.Name)
				if tool.Annotations == nil || !tool.Annotations.ReadOnlyHint {
					t.Errorf("%s is not marked as read-only, so agents would run its calls one after the other",
						tool.Name)
				}
				schema, _ := json.Marshal(tool.InputSchema)
				if hasTo := strings.Contains(string(schema), `"to"`); tool.Name == "Ask" &&
					hasTo == (role.mode == harness.ModeSupervise) {
					t.Errorf("Ask in %s: %s", role.mode, schema)
				}
			}
			if diff := cmp.Diff(role.tools, strings.Join(names, " ")); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCallsGoToTheDispatcherAsTheParticipant(t *testing.T) {
	connector := serve(t, harness.DispatcherConfig{Mode: harness.ModeFacilitate, Participants: two()},
		mcpserve.Config{})
	lead, alice, bob := dial(t, connector, "facilitator", nil), dial(t, connector, "alice", nil), dial(t, connector,
		"bob", nil)
	if text, isError := call(t, lead, "Ask", map[string]any{"question": "Ready?", "to": "alice"}); isError ||
		text != `{"askIds":[1]}` {
		t.Errorf("Ask: %s", text)
	}
	if text, isError := call(t, bob, "Answer", map[string]any{"message": "me too", "askId": 1}); !isError ||
		!strings.Contains(text, "was put to alice, not to bob") {
		t.Errorf("an answer to somebody else's ask: %s", text)
	}
	if text, isError := call(t, alice, "Answer", map[string]any{"message": "yes", "askId": 1}); isError {
		t.Errorf("Answer: %s", text)
	}
	if text, isError := call(t, lead, "Ask",
		map[string]any{"question": strings.Repeat("x", 3<<20), "to": "bob"}); !isError ||
		!strings.Contains(text, "write it to a file") {
		t.Errorf("a message of 3 MB: %.200s", text)
	}
	if text, isError := call(t, lead, "Ask", map[string]any{"question": 7}); !isError ||
		!strings.Contains(text, `"question" must be a string`) {
		t.Errorf("arguments of the wrong type: %s", text)
	}
	if _, err := alice.CallTool(t.Context(),
		&mcp.CallToolParams{
			Name:      "Conclude",
			Arguments: map[string]any{"verdict": "success", "summary": "x"},
		}); err == nil {
		t.Error("a participant concluded the session")
	}
}

func TestACallThatIsRepeatedUnderTheSameIDIsCarriedOutOnce(t *testing.T) {
	for key, repeated := range map[string]string{
		callIDKey:                    `{"askIds":[1]}`,
		"what/theAgentDidNotDeclare": `{"askIds":[2]}`,
	} {
		var first, second string
		var connector harness.Connector
		query := func(cfg harness.AgentConfig) (agent.Agent, error) {
			return harnesstest.New(cfg, func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
				if cfg.Name != "facilitator" {
					_, err := turn.Call(ctx, "Answer", map[string]any{"message": "yes"})
					return "", err
				}
				if turn.Number > 1 {
					_, err := turn.Call(ctx, "Conclude", map[string]any{"verdict": "success", "summary": "done"})
					return "", err
				}
				session := dial(t, connector, "facilitator", nil)
				defer session.Close()
				for _, into := range []*string{&first, &second} {
					result, err := session.CallTool(ctx,
						&mcp.CallToolParams{
							Name: "Ask", Arguments: map[string]any{"question": "?", "to": "alice"},
							Meta: mcp.Meta{key: "call-1"},
						})
					if err != nil {
						return "", err
					}
					*into = textOf(result)
				}
				return "asked", nil
			}), nil
		}
		hold(t, &connector, query, harness.Options{}, mcpserve.Config{})
		if first != `{"askIds":[1]}` || second != repeated {
			t.Errorf("%s: first %s, then %s, want %s", key, first, second, repeated)
		}
	}
}

// hold runs a facilitated session whose members live in this process but use the tools over MCP,
// through the connector that is put into the given place.
func hold(t *testing.T, connector *harness.Connector, query harness.AgentFunc, options harness.Options,
	serving mcpserve.Config,
) (harness.Result, string) {
	t.Helper()
	var out bytes.Buffer
	connect := mcpserve.NewKeyring(3).Connect(serving)
	options.Connect = func(d *harness.Dispatcher) (harness.Connector, error) {
		c, err := connect(d)
		*connector = c
		return c, err
	}
	f, err := harness.NewFacilitator(harness.FacilitatorConfig{
		FacilitatorCwd: t.TempDir(), AgentConfigs: two(),
		NewAgent: query, Output: &out, Options: options,
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := f.Run(t.Context(), "Meet.")
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return result, out.String()
}

func TestACallThatTakesLongReportsProgress(t *testing.T) {
	var progress atomic.Int64
	advice := ""
	var connector harness.Connector
	query := func(cfg harness.AgentConfig) (agent.Agent, error) {
		return harnesstest.New(cfg, func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
			switch {
			case cfg.Name == "advisor":
				for progress.Load() < 3 { // as long as it takes until the client has heard of it three times
					select {
					case <-ctx.Done():
						return "", ctx.Err()
					case <-time.After(time.Millisecond):
					}
				}
				return "Go left.", nil
			case cfg.Name == "facilitator" && turn.Number == 1:
				_, err := turn.Call(ctx, "Ask", map[string]any{"question": "?", "to": "alice"})
				return "", err
			case cfg.Name == "facilitator":
				_, err := turn.Call(ctx, "Conclude", map[string]any{"verdict": "success", "summary": "done"})
				return "", err
			}
			session := dial(t, connector, "alice",
				&mcp.ClientOptions{ProgressNotificationHandler: func(context.Context,
					*mcp.ProgressNotificationClientRequest,
				) {
					progress.Add(1)
				}})
			defer session.Close()
			params := &mcp.CallToolParams{Name: "Advisor", Arguments: map[string]any{"question": "left or right?"}}
			params.SetProgressToken("p1")
			result, err := session.CallTool(ctx, params)
			if err != nil {
				return "", err
			}
			advice = textOf(result)
			_, err = turn.Call(ctx, "Answer", map[string]any{"message": advice})
			return "", err
		}), nil
	}
	result, trace := hold(t, &connector, query, harness.Options{Advisor: harness.AdvisorConfig{Model: "big"}},
		mcpserve.Config{Progress: 5 * time.Millisecond})
	if !result.Success || !strings.HasPrefix(advice, "Go left.") {
		t.Errorf("advice %q\n%s", advice, trace)
	}
}

func TestNobodyGetsInWithoutAToken(t *testing.T) {
	connector := serve(t, harness.DispatcherConfig{Mode: harness.ModeFacilitate, Participants: two()},
		mcpserve.Config{HTTP: true})
	servers, err := connector.Servers("alice", agent.Info{})
	if err != nil {
		t.Fatal(err)
	}
	for _, authorization := range []string{
		"", "Bearer ", "Bearer wrong",
		strings.TrimPrefix(servers[0].Headers["Authorization"], "Bearer "), "Basic " +
			servers[0].Headers["Authorization"],
	} {
		if session, err := connect(t, servers[0].URL, authorization, nil); err == nil {
			t.Errorf("%q was let in", authorization)
			_ = session.Close()
		}
	}
	if !strings.HasPrefix(servers[0].URL, "http://127.0.0.1:") {
		t.Errorf("the server can be reached from outside: %s", servers[0].URL)
	}
	if _, err := connector.Servers("mallory", agent.Info{}); err == nil {
		t.Error("a stranger was given a server")
	}
}

// A participant who learns the id of another's connection still calls as himself.
func TestAConnectionCannotBeTakenOver(t *testing.T) {
	connector := serve(t, harness.DispatcherConfig{Mode: harness.ModeFacilitate, Participants: two()},
		mcpserve.Config{HTTP: true})
	lead := dial(t, connector, "facilitator", nil)
	servers, err := connector.Servers("bob", agent.Info{})
	if err != nil {
		t.Fatal(err)
	}
	body := `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"Conclude","arguments":{"verdict":"success","summary":"mine"}}}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, servers[0].URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": servers[0].Headers["Authorization"], "Mcp-Session-Id": lead.ID(),
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
	} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if strings.Contains(string(answer), "The session is over") {
		t.Errorf("bob concluded the session over the facilitator's connection: %s", answer)
	}
}

func TestTokensAreKnownBeforehand(t *testing.T) {
	keys := mcpserve.NewKeyring(3)
	secrets := keys.Secrets()
	d, err := harness.NewDispatcher(harness.DispatcherConfig{Mode: harness.ModeFacilitate, Participants: two()})
	if err != nil {
		t.Fatal(err)
	}
	connector, err := keys.Connect(mcpserve.Config{HTTP: true})(d)
	if err != nil {
		t.Fatal(err)
	}
	defer connector.Close()
	seen := map[string]bool{}
	for _, name := range d.Participants() {
		servers, _ := connector.Servers(name, agent.Info{})
		token := strings.TrimPrefix(servers[0].Headers["Authorization"], "Bearer ")
		known := false
		for _, secret := range secrets {
			known = known || secret == token
		}
		if !known || seen[token] || len(token) < 32 {
			t.Errorf("token of %s: known %v, shared %v, %d characters", name, known, seen[token], len(token))
		}
		seen[token] = true
	}
	if _, err := mcpserve.NewKeyring(1).Connect(mcpserve.Config{})(d); err == nil {
		t.Error("a session with more participants than tokens was served")
	}
}

// Nobody takes a turn here, so that an Ask which waited for its answer would never return.
func TestAskReturnsWhileEverybodyIsBusy(t *testing.T) {
	connector := serve(t, harness.DispatcherConfig{Mode: harness.ModeFacilitate, Participants: two()},
		mcpserve.Config{})
	lead := dial(t, connector, "facilitator", nil)
	for range 3 {
		if text, isError := call(t, lead, "Ask", map[string]any{"question": "?"}); isError {
			t.Errorf("Ask: %s", text)
		}
	}
}
