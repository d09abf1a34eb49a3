package testenv

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
	"testing"
)

// FreePort returns a TCP port that nobody listens on, for a server that is started later or more
// than once. It is below the ports that the system gives to connections, so that none of them takes
// it meanwhile.
func FreePort(t testing.TB) string {
	t.Helper()
	for {
		port := strconv.Itoa(10_000 + rand.IntN(20_000))
		listener, err := net.Listen("tcp", "127.0.0.1:"+port)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = listener.Close()
		return port
	}
}
