// Package mcprelay lets every program that imports it pass messages between its standard streams
// and the Unix socket of a session's tool server, for agents that reach a tool server by starting a
// program. The program is the one that runs the session, started again under another name.
package mcprelay

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/fit-eval/fit/internal/helper"
)

// Name is the name under which a program is started as a relay, and SocketVariable is the
// environment variable that holds the path of the socket.
const (
	Name           = "fit-mcp-relay"
	SocketVariable = "FIT_MCP_SOCKET"
)

var _ = helper.Become(Name, run)

func run([]string) (status int) {
	if err := relay(os.Getenv(SocketVariable), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fit: relay tool calls:", err)
		return 1
	}
	return 0
}

// relay copies in both directions until the server ends the connection, or both sides have nothing
// more to send.
func relay(socket string, in io.Reader, out io.Writer) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		_, _ = io.Copy(conn, in)              // a failed write shows when the server hangs up
		_ = conn.(*net.UnixConn).CloseWrite() // the agent has ended
	}()
	if _, err := io.Copy(out, conn); err != nil && !errors.Is(err, syscall.EPIPE) {
		return err
	}
	return nil
}
