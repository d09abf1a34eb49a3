package gateway

import (
	"errors"
	"fmt"
	"sync"
)

// OnDemand is a gateway that starts with its first member, because many sessions have none.
type OnDemand struct {
	Config Config

	mu      sync.Mutex
	closed  bool
	gateway *Gateway
}

// Join gives a member a seat. The first member starts the gateway.
func (o *OnDemand) Join(m Member) (*Seat, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, errors.New("the gateway is closed")
	}
	if o.gateway == nil {
		started, err := Start(o.Config)
		if err != nil {
			return nil, fmt.Errorf("%w; --gateway off runs without it", err)
		}
		o.gateway = started
	}
	return o.gateway.Join(m)
}

// URL returns the gateway's address on the loopback interface; empty before its first member.
func (o *OnDemand) URL() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gateway == nil {
		return ""
	}
	return o.gateway.URL()
}

// Close ends the gateway, if it was started. Nobody can join any more.
func (o *OnDemand) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	if o.gateway == nil {
		return nil
	}
	return o.gateway.Close()
}
