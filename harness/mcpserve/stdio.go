package mcpserve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"
)

// The environment variables that tell Relay where to go. They are not on its command line, where
// everybody could read the token.
const (
	EnvURL   = "FIT_MCP_URL"
	EnvToken = "FIT_MCP_TOKEN"
)

// Relay passes MCP messages between a pair of streams and a session's server until one of them
// ends: for agents that can only start a program.
func Relay(ctx context.Context, url, token string, in io.ReadCloser, out io.WriteCloser) error {
	if url == "" || token == "" {
		return fmt.Errorf("the session's tool server is not known: %s and %s are not set", EnvURL, EnvToken)
	}
	near, err := (&mcp.IOTransport{Reader: in, Writer: out}).Connect(ctx)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: bearer(token)}
	defer client.CloseIdleConnections()
	far, err := (&mcp.StreamableClientTransport{Endpoint: url, HTTPClient: client,
		DisableStandaloneSSE: true}).Connect(ctx)
	if err != nil {
		return errors.Join(err, near.Close())
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return pass(ctx, near, far) })
	group.Go(func() error { return pass(ctx, far, near) })
	stop := context.AfterFunc(ctx, func() { // either side has ended, and the other one does not know
		_ = near.Close()
		_ = far.Close()
	})
	defer stop()
	if err := group.Wait(); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, mcp.ErrConnectionClosed) {
		return fmt.Errorf("pass on messages: %w", err)
	}
	return nil
}

func pass(ctx context.Context, from, to mcp.Connection) error {
	for {
		message, err := from.Read(ctx)
		if err != nil {
			return err
		}
		if err := to.Write(ctx, message); err != nil {
			return err
		}
	}
}

// bearer adds the token to every request.
type bearer string

func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(request)
}
