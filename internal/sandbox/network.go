package sandbox

import (
	"context"
	"errors"
	"fmt"
)

// errNoPrivateNetwork is wrapped by the errors of NewPrivateNetwork on systems without private
// networks.
var errNoPrivateNetwork = errors.New("no private network")

// PrivateNetworkWorks tries whether isolated programs can share a private network here, and returns
// nil or why not. An error that wraps ErrUntested does not say that they cannot.
func PrivateNetworkWorks(ctx context.Context) error {
	return tryAgain(ctx, func() error {
		network, err := NewPrivateNetwork()
		if err != nil {
			return err
		}
		defer network.Close()
		if err := tryIsolation(ctx, Isolation{Kind: IsolationBwrap, Join: network}); err != nil {
			return fmt.Errorf("in a private network, %w", err)
		}
		return nil
	})
}
