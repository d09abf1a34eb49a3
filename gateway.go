package fit

import (
	"errors"
	"sync"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/redact"
)

// decideGateway finds out whether the model calls of a session go through a gateway, unless the
// caller has decided.
func (w Wiring) decideGateway(base *agent.Config) error {
	var option *gateway.OptionError
	if err := w.Calls.Check(); errors.As(err, &option) {
		return &ConfigError{"Calls." + option.Option, errors.New("it " + option.Reason)}
	}
	if w.Calls.Replay != "" {
		if _, err := gateway.FindRecord(w.Calls.Replay); err != nil {
			return &ConfigError{"Calls.Replay", err}
		}
		if w.Calls.Offline() {
			base.ModelURL = gateway.NoEndpoint
		}
	}
	if w.Calls.Gateway != gateway.Off {
		return nil
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
		Policy:   w.Calls.Policy,
		Rate:     gateway.NewRateControl(),
		Redactor: redactor,
		Prices:   base.Prices,
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
	return sync.OnceFunc(func() {
		if err := errors.Join(proxy.Close(), record.Close()); err != nil {
			w.warnf("close the gateway: %v", err)
		}
	}), nil
}
