package builtin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/model"
	"github.com/fit-eval/fit/internal/sandbox"
)

// connectTimeout is how long a tool server may take to answer at the start: a server that is
// silently missing is worse than an error.
const connectTimeout = 30 * time.Second

// toolServer is an attached MCP server.
type toolServer struct {
	name    string
	session *mcp.ClientSession
	tools   []tool
	stop    func() // ends a server that we started ourselves and waits for it
	// lost is how a server that we started ended by no fault of its own.
	lost func() error
}

func (s *toolServer) close() {
	if s.session != nil {
		_ = s.session.Close() // the session is over either way
	}
	if s.stop != nil {
		s.stop()
	}
}

// connectServers attaches all servers. It returns those it has connected even on error, so that
// they can be closed.
func connectServers(ctx context.Context, cfg agent.Config) ([]*toolServer, error) {
	var servers []*toolServer
	for _, description := range cfg.MCPServers {
		server, err := connect(ctx, cfg, description)
		if server != nil {
			servers = append(servers, server)
		}
		if err != nil {
			return servers, fmt.Errorf("connect tool server %q: %w", description.Name, err)
		}
	}
	return servers, nil
}

func connect(ctx context.Context, cfg agent.Config, description agent.MCPServer) (*toolServer, error) {
	server := &toolServer{name: description.Name}
	var transport mcp.Transport
	switch {
	case description.Socket != "":
		conn, err := net.Dial("unix", description.Socket)
		if err != nil {
			return nil, err
		}
		transport = &mcp.IOTransport{Reader: conn, Writer: conn}
	case description.URL != "":
		transport = &mcp.StreamableClientTransport{
			Endpoint:             description.URL,
			HTTPClient:           newHTTPClient(cfg, description),
			DisableStandaloneSSE: true,
		}
	case description.Command != "":
		transport = server.start(ctx, cfg, description)
	default:
		return nil, errors.New("it has neither a url nor a command")
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "fit-builtin", Version: buildVersion()}, nil)
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		return server, server.blamed(err)
	}
	server.session = session
	for listed, err := range session.Tools(ctx, nil) {
		if err != nil {
			return server, fmt.Errorf("list its tools: %w", err)
		}
		server.tools = append(server.tools, server.toolOf(listed))
	}
	return server, nil
}

// start runs a server that speaks over its standard streams, under the same spawner as everything
// else.
func (s *toolServer) start(ctx context.Context, cfg agent.Config, description agent.MCPServer) mcp.Transport {
	environment := sandbox.NewEnvironment(sandbox.EnvironmentConfig{Parent: cfg.Environ})
	maps.Copy(environment, description.Env)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	fromServer, serverOut := io.Pipe()
	serverIn, toServer := io.Pipe()
	done := make(chan struct{})
	var failure error
	go func() {
		defer close(done)
		result, err := cfg.Spawner.Spawn(ctx, sandbox.SpawnSpec{
			Argv:      append([]string{description.Command}, description.Args...),
			Dir:       cfg.Dir,
			Env:       environment.List(),
			Stdin:     serverIn,
			Grace:     commandGrace,
			MaxOutput: -1,
			Isolation: cfg.Isolated(),
			Limits:    cfg.Limits,
		}, serverOut, io.Discard)
		switch {
		case notTheModels(err):
			failure = err
		case result.Signal == "SIGKILL" && result.Exceeded == "" && !result.Cancelled:
			failure = fmt.Errorf("%w: tool server %q was ended by SIGKILL", agent.ErrKilled, description.Name)
		}
		serverOut.CloseWithError(cmp.Or(err, io.EOF))
	}()
	s.lost = func() error {
		select {
		case <-done:
			return failure
		default:
			return nil
		}
	}
	s.stop = func() {
		cancel()
		_ = fromServer.Close() // a writer that is blocked must notice
		<-done
	}
	return &mcp.IOTransport{Reader: fromServer, Writer: toServer}
}

func (s *toolServer) toolOf(listed *mcp.Tool) tool {
	schema, err := json.Marshal(listed.InputSchema)
	if err != nil || string(schema) == "null" {
		schema = []byte(`{"type":"object"}`)
	}
	return tool{
		name:        "mcp__" + s.name + "__" + listed.Name,
		description: listed.Description,
		schema:      string(schema),
		repeatable:  true,
		run: func(ctx context.Context, call model.ToolCall) (string,
			error,
		) {
			return s.call(ctx, listed.Name, call)
		},
	}
}

// callIDKey is where a server finds the id of the call, which identifies a repetition.
const callIDKey = "fit/toolUseId"

func (s *toolServer) call(ctx context.Context, name string, call model.ToolCall) (string, error) {
	result, err := s.session.CallTool(ctx,
		&mcp.CallToolParams{Name: name, Arguments: call.Input, Meta: mcp.Meta{callIDKey: call.ID}})
	if err != nil {
		return "", s.blamed(err)
	}
	var texts []string
	for _, content := range result.Content {
		switch content := content.(type) {
		case *mcp.TextContent:
			texts = append(texts, content.Text)
		default:
			texts = append(texts, fmt.Sprintf("(%T left out)", content))
		}
	}
	text := strings.Join(texts, "\n")
	if result.IsError {
		return "", errors.New(text)
	}
	return text, nil
}

// blamed returns the error of a request, and with it why the server is gone if that was not its own
// doing.
func (s *toolServer) blamed(err error) error {
	if s.lost == nil {
		return err
	}
	return errors.Join(err, s.lost())
}

// headerTransport adds headers, such as the bearer token, to every request.
type headerTransport struct {
	headers map[string]string
	through http.RoundTripper
}

// newHTTPClient returns the client of a server. Redirects are not followed: the headers may hold a
// token, which is meant for that server.
func newHTTPClient(cfg agent.Config, server agent.MCPServer) *http.Client {
	return &http.Client{
		Transport:     newTransport(cfg, server),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func newTransport(cfg agent.Config, server agent.MCPServer) headerTransport {
	transport := headerTransport{headers: server.Headers, through: http.DefaultTransport}
	if dial := cfg.DialServer(server); dial != nil {
		transport.through = &http.Transport{DialContext: dial, DisableKeepAlives: true}
	}
	return transport
}

func (t headerTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	for name, value := range t.headers {
		request.Header.Set(name, value)
	}
	return t.through.RoundTrip(request)
}
