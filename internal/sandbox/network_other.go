//go:build unix && !linux

package sandbox

import (
	"context"
	"fmt"
	"net"
)

// PrivateNetwork is a network that several isolated programs share. It needs Linux.
type PrivateNetwork struct{}

// NewPrivateNetwork returns an error: there are no network namespaces here.
func NewPrivateNetwork() (*PrivateNetwork, error) {
	return nil, fmt.Errorf("%w: it needs Linux", errNoPrivateNetwork)
}

// Dial returns an error.
func (*PrivateNetwork) Dial(context.Context, int) (net.Conn, error) { return nil, errNoPrivateNetwork }

// Listen returns an error.
func (*PrivateNetwork) Listen(context.Context, int) (net.Listener, error) {
	return nil, errNoPrivateNetwork
}

// Close does nothing.
func (*PrivateNetwork) Close() {}
