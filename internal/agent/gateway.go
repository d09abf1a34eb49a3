package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/fit-eval/fit/internal/gateway"
)

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
		return cfg.start(ctx, a)
	}
	upstreams, err := upstreamsOf(a, cfg)
	if err != nil {
		return cfg.announcing(gateway.Off, err.Error()).start(ctx, a)
	}
	meter := meterOnWire(&cfg)
	seat, err := cfg.Gateway.Join(cfg, upstreams)
	if err != nil {
		return nil, fmt.Errorf("join the gateway: %w", err)
	}
	cfg.Seat = seat
	held := seated{seat: seat, meter: meter, showsTurns: a.Info().Capabilities.MaxTurns != Unsupported}
	if a.Info().Capabilities.MaxTurns == Enforced {
		held.maxTurns = cfg.MaxTurns
	}
	if seat.Paid() { // its account alone enforces the limits
		cfg.MaxCostUSD, cfg.MaxTokens = 0, 0
	}
	started, err := cfg.announcing(gateway.On, "").start(ctx, a)
	if err != nil {
		_ = seat.Leave() // the first error is the one to report
		return nil, err
	}
	held.Session = started
	if once, ok := started.(promptOnce); ok {
		return seatedOnce{held, once}, nil
	}
	return held, nil
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

// seated is a session with a seat at the gateway, which it gives up when it is closed.
type seated struct {
	Session
	seat     *gateway.Seat
	meter    *wireMeter
	maxTurns int // of a prompt, enforced by the gateway; 0 if it does not
	// showsTurns says that the turns are the agent's own: one that shows none need not ask a model.
	showsTurns bool
}

// Prompt implements Session.
func (s seated) Prompt(ctx context.Context, text string) (Result, error) {
	return s.metered(ctx, func(ctx context.Context) (Result, error) { return s.Session.Prompt(ctx, text) })
}

func (s seated) Close() error { return errors.Join(s.Session.Close(), s.seat.Leave()) }

// promptOnce is implemented by sessions whose conversation survives a crash.
type promptOnce interface {
	PromptOnce(ctx context.Context, id, prompt string) (Result, error)
}

type seatedOnce struct {
	seated
	once promptOnce
}

// PromptOnce is Prompt for a prompt that must not be asked twice.
func (s seatedOnce) PromptOnce(ctx context.Context, id, prompt string) (Result, error) {
	return s.metered(ctx, func(ctx context.Context) (Result, error) { return s.once.PromptOnce(ctx, id, prompt) })
}
