package mcpserve

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fit-eval/fit/internal/harness"
)

// callID returns the id that the model gave a call; empty if the agent does not pass it on. A call
// that is repeated under the same id is carried out once.
func (e *endpoint) callID(meta mcp.Meta) string {
	key := e.callIDKey.Load()
	if key == nil {
		return ""
	}
	id, _ := meta[*key].(string)
	return id
}

// handle passes a call on to the dispatcher.
func (e *endpoint) handle(to *harness.Dispatcher, participant string, tool harness.Tool,
	interval time.Duration,
) mcp.ToolHandler {
	return func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if tool.Slow {
			defer reportProgress(ctx, request, interval)()
		}
		result, err := to.CallOnce(ctx, e.callID(request.Params.Meta), participant, tool.Name, request.Params.Arguments)
		if err != nil {
			// The session cannot continue, and when it is resumed the call is repeated. An answer
			// now, even an error, would stay in the agent's record as the result of the call.
			<-ctx.Done()
			return nil, err
		}
		return &mcp.CallToolResult{
			Content: []mcp.Content{&mcp.TextContent{Text: result.Text}},
			IsError: result.IsError,
		}, nil
	}
}

// reportProgress notifies the client periodically that a call is still running, until the returned
// function is called.
func reportProgress(ctx context.Context, request *mcp.CallToolRequest, interval time.Duration) (stop func()) {
	token := request.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for count := 1; ; count++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				// a lost client shows when it is answered
				_ = request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
					ProgressToken: token, Progress: float64(count), Message: "still at it",
				})
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
