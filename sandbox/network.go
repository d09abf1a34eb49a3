package sandbox

import (
	"context"
	"errors"
	"time"
)

// errNoPrivateNetwork is wrapped by the errors of NewPrivateNetwork where the system has none to
// give.
var errNoPrivateNetwork = errors.New("no private network")

// tryPrivateNetwork makes a private network and runs a program in it that does nothing.
func (c *Capability) tryPrivateNetwork(ctx context.Context, fix string) {
	err := PrivateNetworkWorks(ctx)
	if err != nil {
		c.Detail, c.Fix = err.Error(), fix
		return
	}
	c.OK, c.Detail = true, "works"
}

// PrivateNetworkWorks tries whether isolated programs can share a private network here, and returns
// nil or why not.
func PrivateNetworkWorks(ctx context.Context) error {
	network, err := NewPrivateNetwork()
	if err != nil {
		return err
	}
	defer network.Close()
	result, err := Local{}.Spawn(ctx, SpawnSpec{
		Argv:      []string{"true"},
		Dir:       "/",
		Isolation: Isolation{Kind: IsolationBwrap, Join: network},
		Env:       []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
		Timeout:   5 * time.Second,
	}, nil, nil)
	if err == nil && (result.ExitCode != 0 || result.TimedOut) {
		err = errors.New("bubblewrap hangs or fails in a private network")
	}
	return err
}
