package agentscli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// toolService is a tool server on this machine.
type toolService struct {
	URL     string
	server  *http.Server
	serving sync.WaitGroup
}

// Close ends the server.
func (s *toolService) Close() {
	_ = s.server.Close() // nothing is kept that could be lost
	s.serving.Wait()
}

// stampInput is the input of the tool.
type stampInput struct {
	Text string `json:"text" jsonschema:"text to stamp"`
}

// serveTool offers the tool stamp, and calls a function when it is called.
func serveTool(called func()) (*toolService, error) {
	tools := mcp.NewServer(&mcp.Implementation{Name: toolServer, Version: "1"}, nil)
	mcp.AddTool(tools, &mcp.Tool{
		Name:        toolName,
		Description: "Stamps a text.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, func(_ context.Context, _ *mcp.CallToolRequest, input stampInput) (*mcp.CallToolResult, any, error) {
		called()
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "stamped: " + input.Text}}}, nil, nil
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve a tool: %w", err)
	}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, nil)
	service := &toolService{
		URL:    "http://" + listener.Addr().String() + "/mcp",
		server: &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute},
	}
	service.serving.Go(func() { _ = service.server.Serve(listener) }) // whoever needs the tool will miss it
	return service, nil
}
