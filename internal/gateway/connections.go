package gateway

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
)

// How many connections without a token, and of one member, may be open. Agents have a handful.
const (
	maxStrangers = 128
	maxOfMember  = 512
)

// connections holds the open connections by owner. No owner can use up all that the process may
// have open: if it has too many, the oldest is closed.
type connections struct {
	mu      sync.Mutex
	owner   map[net.Conn]*Seat   // nil: whose token has not been seen
	byOwner map[*Seat][]net.Conn // oldest first
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// watch makes a server report its connections, which belong to a seat, or to nobody yet.
func (c *connections) watch(server *http.Server, owner *Seat) {
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		c.give(conn, owner)
		return context.WithValue(ctx, connKey{}, conn)
	}
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		if state == http.StateClosed || state == http.StateHijacked {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.drop(conn)
		}
	}
}

// belongs notes whose token came over the connection of a request.
func (c *connections) belongs(r *http.Request, seat *Seat) {
	if conn, ok := r.Context().Value(connKey{}).(net.Conn); ok {
		c.give(conn, seat)
	}
}

// give assigns a connection to an owner, and closes the owner's oldest if it has too many.
func (c *connections) give(conn net.Conn, to *Seat) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if owner, known := c.owner[conn]; known && owner == to {
		return
	}
	if c.owner == nil {
		c.owner, c.byOwner = map[net.Conn]*Seat{}, map[*Seat][]net.Conn{}
	}
	c.drop(conn)
	c.owner[conn] = to
	c.byOwner[to] = append(c.byOwner[to], conn)
	most := maxOfMember
	if to == nil {
		most = maxStrangers
	}
	if open := c.byOwner[to]; len(open) > most {
		oldest := open[0]
		c.drop(oldest)
		_ = oldest.Close() // its server sees a client that has gone
	}
}

// drop forgets a connection.
func (c *connections) drop(conn net.Conn) {
	owner, known := c.owner[conn]
	if !known {
		return
	}
	delete(c.owner, conn)
	open := c.byOwner[owner]
	at := slices.Index(open, conn)
	if open = slices.Delete(open, at, at+1); len(open) == 0 {
		delete(c.byOwner, owner)
	} else {
		c.byOwner[owner] = open
	}
}
