// Package mcprelay lets every program that imports it pass messages between its standard streams
// and the Unix socket of a session's tool server, for agents that reach a tool server by starting a
// program. The program is the one that runs the session, started again: importing the package is
// enough, and in such a process nothing else of the program runs.
package mcprelay

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

const (
	// Argument is the only argument of a program that is started as a relay.
	Argument = "fit-mcp-relay"
	// SocketVariable is the environment variable that holds the path of the socket.
	SocketVariable = "FIT_MCP_SOCKET"
)

// The variable runs the relay before main, so that no program can forget it.
var _ = relayIfAsked()

func relayIfAsked() bool {
	socket := os.Getenv(SocketVariable)
	if len(os.Args) != 2 || os.Args[1] != Argument || socket == "" {
		return false
	}
	code := 0
	if err := relay(socket, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fit: relay tool calls:", err)
		code = 1
	}
	syscall.Exit(code) // at once: under the race detector, os.Exit sleeps for a second
	return true
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
