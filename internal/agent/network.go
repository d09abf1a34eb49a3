package agent

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync"

	"github.com/fit-eval/fit/internal/sandbox"
)

// Door is a service that an agent reaches on a port of its own loopback.
type Door struct {
	Port  int
	Serve func(net.Listener) error // returns when the listener has been closed
}

// NetworkKind returns what an agent with this config reaches: sandbox.NetworkHost, NetworkModel or
// NetworkNone.
func (c Config) NetworkKind() string {
	switch {
	case !c.Isolation.Isolates() || c.Isolation.Network:
		return sandbox.NetworkHost
	case c.Network == sandbox.NetworkModel:
		return sandbox.NetworkModel
	}
	return sandbox.NetworkNone
}

// enclose puts the programs of an agent into their own network, in which only the doors answer. The
// caller calls release when the agent has ended.
func (c *Config) enclose(ctx context.Context) (release func(), err error) {
	if c.Isolation.Container != nil {
		return c.encloseInside(ctx)
	}
	network, err := sandbox.NewPrivateNetwork()
	if err != nil {
		return nil, err
	}
	var serving sync.WaitGroup
	var listeners []net.Listener
	release = sync.OnceFunc(func() {
		for _, listener := range listeners {
			_ = listener.Close() // nobody connects any more
		}
		serving.Wait()
		network.Close()
	})
	for _, door := range c.doors() {
		listener, err := network.Listen(ctx, door.Port)
		if err != nil {
			release()
			return nil, fmt.Errorf("port %d of the agent's network: %w", door.Port, err)
		}
		listeners = append(listeners, listener)
		serving.Go(func() { _ = door.Serve(listener) }) // it always returns an error after release
	}
	c.Isolation.Network, c.Isolation.Join = false, network
	return release, nil
}

// apart reports whether the agent's container has a way out, but another loopback than ours.
func (c *Config) apart() bool {
	return c.NetworkKind() == sandbox.NetworkHost && c.Isolation.Container != nil && c.Isolation.Container.OwnNetwork()
}

// besides reports whether a tool server is a service beside the agent's container.
func (c *Config) besides(server MCPServer) bool {
	at, err := url.Parse(server.URL)
	return err == nil && c.Isolation.Container != nil &&
		slices.Contains(c.Isolation.Container.Config().Hosts, at.Hostname())
}

// DialServer returns how a connection to a tool server is made from here; nil is the ordinary way.
func (c *Config) DialServer(server MCPServer) func(ctx context.Context, network, address string) (net.Conn, error) {
	if !c.besides(server) {
		return nil
	}
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		_, text, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		port, err := strconv.Atoi(text)
		if err != nil {
			return nil, err
		}
		return c.Isolation.Container.Dial(ctx, port)
	}
}

// doors returns all services of the agent: its model, and those that the caller names.
func (c *Config) doors() []Door {
	doors := slices.Clone(c.Doors)
	if c.Seat != nil {
		serve := c.Seat.Serve
		if c.Isolation.Container != nil {
			serve = c.Seat.ServeCell
		}
		doors = append(doors, Door{c.Seat.Port(), serve})
	}
	return doors
}

// encloseInside opens the doors on the loopback of the agent's container, which has no other
// network.
func (c *Config) encloseInside(ctx context.Context) (release func(), err error) {
	var opened []func()
	release = sync.OnceFunc(func() {
		for _, shut := range opened {
			shut()
		}
	})
	for _, door := range c.doors() {
		shut, err := c.Isolation.Container.Open(ctx, door.Port, door.Serve)
		if err != nil {
			release()
			return nil, err
		}
		opened = append(opened, shut)
	}
	return release, nil
}

// NetworkError says why an agent cannot work in the requested network.
type NetworkError struct {
	Network string
	Reason  string
}

func (e *NetworkError) Error() string { return "network " + e.Network + ": " + e.Reason }

// CheckNetwork returns why an agent cannot work in the network of a config; nil if it can. The
// config must say where the agent is installed.
func CheckNetwork(a Agent, cfg Config) error {
	kind, id := cfg.NetworkKind(), a.Info().ID
	// an agent that is part of this program calls its model from here
	calls := cfg.Installation != nil && cfg.Installation.Path != "" && len(a.Info().Protocols) > 0
	switch {
	case kind == sandbox.NetworkHost:
		return nil
	case kind == sandbox.NetworkNone && calls:
		return &NetworkError{kind, fmt.Sprintf("%s could not call its model; use %s", id, sandbox.NetworkModel)}
	case kind == sandbox.NetworkModel && calls:
		if why := WithoutGateway(a, cfg); why != "" {
			return &NetworkError{kind, fmt.Sprintf("the model calls of %s do not go through fit: %s", id, why)}
		}
	}
	for _, server := range cfg.MCPServers {
		if server.URL != "" && !cfg.besides(server) {
			return &NetworkError{kind, fmt.Sprintf("it blocks the tool server %s; attach that as a command, or use "+
				"%s", server.Name, sandbox.NetworkHost)}
		}
	}
	return nil
}
