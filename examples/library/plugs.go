package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fit-eval/fit"
)

// counting is a spawner that counts what the agents of a program start.
type counting struct {
	fit.ProcessSpawner
	started int
}

// Spawn implements fit.ProcessSpawner.
func (c *counting) Spawn(ctx context.Context, s fit.SpawnSpec, stdout, stderr io.Writer) (fit.SpawnResult, error) {
	c.started++
	return c.ProcessSpawner.Spawn(ctx, s, stdout, stderr)
}

// ownSpawner runs the built-in agent with a spawner of the program's own.
func ownSpawner(ctx context.Context, model string, args []string) error {
	spawner := &counting{ProcessSpawner: fit.NewSpawner()}
	_, err := fit.Wiring{Spawner: spawner}.Run(ctx, fit.RunConfig{
		Task:     "Repair add.sh.",
		Cwd:      args[0],
		Agent:    "builtin",
		Model:    "scripted",
		ModelURL: model,
		Output:   io.Discard,
	})
	fmt.Println("programs were started:", spawner.started > 0)
	return err
}

// toolServer attaches a tool server to an agent. The server is this program, which no sandbox
// shows.
func toolServer(ctx context.Context, model string, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var trace bytes.Buffer
	_, err = fit.Wiring{Isolation: "none"}.Run(ctx, fit.RunConfig{
		Task:       "Ask for the answer.",
		Cwd:        args[0],
		Agent:      "builtin",
		Model:      "scripted",
		ModelURL:   model,
		MCPServers: []fit.MCPServer{{Name: "mine", Command: self, Args: []string{"serve"}}},
		Output:     &trace,
	})
	fmt.Println("the tool answered:", bytes.Contains(trace.Bytes(), []byte("forty-two")))
	return err
}

// serve speaks the Model Context Protocol on standard input and output.
func serve(ctx context.Context) error {
	server := mcp.NewServer(&mcp.Implementation{Name: "mine", Version: "1"}, nil)
	type nothing struct{}
	mcp.AddTool(server, &mcp.Tool{Name: "answer", Description: "Returns the answer."},
		func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, nothing, error) {
			text := &mcp.TextContent{Text: "forty-two"}
			return &mcp.CallToolResult{Content: []mcp.Content{text}}, nothing{}, nil
		})
	return server.Run(ctx, &mcp.StdioTransport{})
}
