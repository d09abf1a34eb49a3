package agent

import (
	"context"
	"errors"

	"github.com/fit-eval/fit/internal/sandbox"
)

// start starts a session in its own network, if the config asks for one. The network ends with the
// session.
func (c Config) start(ctx context.Context, a Agent) (Session, error) {
	if c.NetworkKind() != sandbox.NetworkModel && !c.apart() {
		return begun(a.Start(ctx, c))
	}
	release, err := c.enclose(ctx)
	if err != nil {
		return nil, err
	}
	session, err := begun(a.Start(ctx, c))
	if err != nil {
		release()
		return nil, err
	}
	held := enclosed{session, release}
	if once, ok := session.(promptOnce); ok {
		return enclosedOnce{held, once}, nil
	}
	return held, nil
}

func begun(session Session, err error) (Session, error) {
	if err == nil && session == nil {
		err = errors.New("the agent returned no session")
	}
	return session, err
}

// enclosed is a session with a network, which it gives up when it is closed.
type enclosed struct {
	Session
	release func()
}

// Close implements Session.
func (e enclosed) Close() error {
	defer e.release()
	return e.Session.Close()
}

type enclosedOnce struct {
	enclosed
	promptOnce
}
