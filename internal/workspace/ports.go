package workspace

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// The range that ports are taken from. It is below the ports that systems give to outgoing
// connections and to listeners that ask for any port, so that no other program takes a reserved one
// by accident.
const (
	firstPort = 20_000
	lastPort  = 32_000
)

// Ports hands out port numbers that nobody on this machine listens on and that no other workspace
// has. Its zero value is ready for use.
type Ports struct {
	mu    sync.Mutex
	inUse map[int]bool
}

// reserve returns a port of 127.0.0.1 that can be bound and is not handed out again before it is
// released.
func (p *Ports) reserve(ctx context.Context) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inUse == nil {
		p.inUse = map[int]bool{}
	}
	const count = lastPort - firstPort
	start := rand.IntN(count)
	for i := range count {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		port := firstPort + (start+i)%count
		if !p.inUse[port] && bindable(port) {
			p.inUse[port] = true
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port on 127.0.0.1 between %d and %d", firstPort, lastPort)
}

// release gives a port back.
func (p *Ports) release(port int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.inUse, port)
}

// bindable reports whether a program could listen on the port now.
func bindable(port int) bool {
	listener, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}
