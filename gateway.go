package fit

import (
	"errors"
	"fmt"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/redact"
)

// decideGateway finds out whether the model calls of a session go through a gateway, unless the
// caller has decided.
func (w Wiring) decideGateway(base *agent.Config) error {
	if w.Calls.Replay != "" {
		if w.Gateway == agent.GatewayOff {
			return &ConfigError{"Calls.Replay", errors.New("only the gateway can answer from a record, and it is off")}
		}
		if _, err := gateway.FindRecord(w.Calls.Replay); err != nil {
			return &ConfigError{"Calls.Replay", err}
		}
		if w.Calls.Offline() {
			base.ModelURL = gateway.NoEndpoint
		}
	}
	switch w.Gateway {
	case "", agent.GatewayOn:
		return nil
	case agent.GatewayOff:
	default:
		return &ConfigError{"Gateway", fmt.Errorf("it is %q, want on or off", w.Gateway)}
	}
	if w.Faults != nil {
		return &ConfigError{"Faults", errors.New("only the gateway can make calls fail on purpose, and it is off")}
	}
	if w.DenyServerTools {
		return &ConfigError{
			"DenyServerTools", errors.New("only the gateway can take tools out of requests, and it is off"),
		}
	}
	if base.Gateway.Join == nil && base.Gateway.Off == "" {
		base.Gateway.Off = "it was switched off"
	}
	return nil
}

// openGateway sends the model calls of a session through a gateway, unless it was decided
// otherwise. Calling end stops the gateway.
func (w Wiring) openGateway(base *agent.Config, redactor *redact.Redactor) (end func(), err error) {
	if base.Gateway.Join != nil || base.Gateway.Off != "" {
		return func() {}, nil
	}
	config := w.Calls
	config.Redactor = redactor
	record, err := gateway.OpenRecord(config)
	if err != nil {
		return nil, err
	}
	proxy := &gateway.OnDemand{Config: gateway.Config{
		Account:         runAccount(base),
		Faults:          w.Faults,
		Rate:            gateway.NewRateControl(),
		Redactor:        redactor,
		Prices:          base.Prices,
		DenyServerTools: w.DenyServerTools,
	}}
	base.Gateway.Join = func(cfg agent.Config, upstreams []gateway.Upstream) (*gateway.Seat, error) {
		member := gateway.Member{
			Name:      cfg.Name,
			FaultKey:  "run",
			Upstreams: upstreams,
			OnCall:    cfg.Called,
			Account:   cfg.Account,
		}
		if err := record.Enter(&member, cfg.OwnDirs()); err != nil {
			return nil, err
		}
		return proxy.Join(member)
	}
	return func() {
		if err := errors.Join(proxy.Close(), record.Close()); err != nil {
			w.warnf("close the gateway: %v", err)
		}
	}, nil
}

// runAccount returns the account that pays for the calls of all agents of a session; nil where
// there is no limit.
func runAccount(base *agent.Config) *gateway.Account {
	budget := gateway.Budget{USD: base.MaxCostUSD, Tokens: base.MaxTokens}
	if budget == (gateway.Budget{}) {
		return nil
	}
	return gateway.NewAccount("this run", budget, base.Prices)
}
