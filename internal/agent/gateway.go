package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/fit-eval/fit/internal/gateway"
)

// ModelChooser is an agent that knows which model it asks where the configuration names none.
type ModelChooser interface {
	ChosenModel(cfg Config) string
}

// Routed is an agent whose model calls can go through a gateway. Where Config.Seat is set, it
// starts with the URL and the token of the seat in place of its endpoint and its key.
type Routed interface {
	// Upstreams says where a session with this config sends its model calls and with what key, one
	// entry for each protocol that it may speak. An error says why the calls cannot go through a
	// gateway.
	Upstreams(cfg Config) ([]gateway.Upstream, error)
}

// Gateway says how the model calls of a session go through a gateway.
type Gateway struct {
	// Join gives the session a seat; nil: the agent talks to its model itself.
	Join func(cfg Config, upstreams []gateway.Upstream) (*gateway.Seat, error)
	// Off says why there is no gateway.
	Off string
}

// OwnDirs returns the directories of a session that differ from run to run, by purpose.
func (c Config) OwnDirs() map[string]string { return map[string]string{"cwd": c.Dir, "home": c.Home} }

// WithoutGateway returns why the model calls of a session cannot go through a gateway; empty where
// they can. It costs nothing.
func WithoutGateway(a Agent, cfg Config) string {
	_, err := upstreamsOf(a, cfg)
	if err != nil {
		return err.Error()
	}
	return ""
}

func upstreamsOf(a Agent, cfg Config) ([]gateway.Upstream, error) {
	if cfg.Gateway.Off != "" {
		return nil, errors.New(cfg.Gateway.Off)
	}
	routed, ok := a.(Routed)
	if !ok {
		return nil, fmt.Errorf("agent %s cannot be pointed at another endpoint", a.Info().ID)
	}
	return routed.Upstreams(cfg)
}

// Start starts a session of an agent in the network that its config names. Its model calls go
// through the gateway if the config has one and the agent can use it; Config.Started reports
// whether they do, and which programs of the project may run.
func Start(ctx context.Context, a Agent, cfg Config) (Session, error) {
	cfg = cfg.announcingPrograms(a.Info())
	if cfg.Gateway.Join == nil && cfg.Gateway.Off == "" {
		return cfg.startPastGateway(ctx, a)
	}
	upstreams, err := upstreamsOf(a, cfg)
	if err != nil {
		return cfg.announcing(gateway.Off, err.Error()).startPastGateway(ctx, a)
	}
	seat, err := cfg.Gateway.Join(cfg, upstreams)
	if err != nil {
		return nil, fmt.Errorf("join the gateway: %w", err)
	}
	cfg.Seat = seat
	held := seated{seat: seat, showsTurns: a.Info().Capabilities.MaxTurns != Unsupported}
	if a.Info().Capabilities.MaxTurns != Native {
		held.maxTurns = cfg.MaxTurns
	}
	started, err := cfg.announcing(gateway.On, "").start(ctx, a)
	if err != nil {
		_ = seat.Leave() // the first error is the one to report
		return nil, err
	}
	return pays(paid{Session: started, pay: held.metered, leave: seat.Leave}), nil
}

// startPastGateway starts a session whose model calls do not go through a gateway.
func (c Config) startPastGateway(ctx context.Context, a Agent) (Session, error) {
	if c.Account == nil {
		return c.start(ctx, a)
	}
	account := &reported{account: c.Account}
	c.Consumed = account.consumed
	started, err := c.start(ctx, a)
	if err != nil {
		return nil, err
	}
	return pays(paid{Session: started, pay: account.pay, leave: func() error { return nil }}), nil
}

// announcing returns the config with Started reporting the state of the gateway.
func (c Config) announcing(state, reason string) Config {
	if tell := c.Started; tell != nil {
		c.Started = func(started Started) {
			started.Gateway, started.GatewayReason = state, reason
			tell(started)
		}
	}
	return c
}

// seated is a seat at the gateway.
type seated struct {
	seat     *gateway.Seat
	maxTurns int // of a prompt, enforced by the gateway; 0 if it does not
	// showsTurns says that the turns are the agent's own: one that shows none need not ask a model.
	showsTurns bool
}

// paid is a session whose prompts are paid for.
type paid struct {
	Session
	pay   func(ctx context.Context, prompt func(context.Context) (Result, error)) (Result, error)
	leave func() error // when it is closed
}

// pays keeps what a session can do beyond the interface.
func pays(p paid) Session {
	if once, ok := p.Session.(promptOnce); ok {
		return paidOnce{p, once}
	}
	return p
}

// Prompt implements Session.
func (p paid) Prompt(ctx context.Context, text string) (Result, error) {
	return p.pay(ctx, func(ctx context.Context) (Result, error) { return p.Session.Prompt(ctx, text) })
}

// Close implements Session.
func (p paid) Close() error { return errors.Join(p.Session.Close(), p.leave()) }

// promptOnce is implemented by sessions whose conversation survives a crash.
type promptOnce interface {
	PromptOnce(ctx context.Context, id, prompt string) (Result, error)
}

type paidOnce struct {
	paid
	once promptOnce
}

// PromptOnce is Prompt for a prompt that must not be asked twice.
func (p paidOnce) PromptOnce(ctx context.Context, id, prompt string) (Result, error) {
	return p.pay(ctx, func(ctx context.Context) (Result, error) { return p.once.PromptOnce(ctx, id, prompt) })
}
