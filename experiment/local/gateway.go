package local

import (
	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/experiment"
	"github.com/fit-eval/fit/gateway"
)

func newGateway(cfg Config) *gateway.OnDemand {
	return &gateway.OnDemand{Config: gateway.Config{
		Redactor:        cfg.Machine.Redactor,
		Prices:          cfg.Machine.Prices,
		DenyServerTools: cfg.Prepared.DenyServerTools,
		Now:             cfg.Machine.Now,
	}}
}

// gatewayOff is why agents have no gateway; empty if they have one.
func gatewayOff(setup *experiment.Setup) string {
	if setup.Gateway == agent.GatewayOff {
		return "it was switched off"
	}
	return ""
}

// gatewayOf is the way of the agents of a cell to their models.
func (e *Executor) gatewayOf(cell experiment.Cell) agent.Gateway {
	if off := gatewayOff(&e.prepared.Setup); off != "" {
		return agent.Gateway{Off: off}
	}
	return agent.Gateway{
		Join: func(cfg agent.Config, upstreams []gateway.Upstream) (*gateway.Seat, error) {
			return e.gateway.Join(gateway.Member{Name: cfg.Name, Cell: cell.Name(), Upstreams: upstreams})
		},
	}
}

// noteGateway records whether the agent of a supervised session goes through the gateway.
func (a *attempt) noteGateway(cfg agent.Config) {
	chosen, err := a.machine.Registry.Get(a.arm.Agent)
	if err != nil {
		return // the session says so
	}
	cfg.Model = a.arm.Model
	a.record.Gateway, a.record.GatewayReason = agent.GatewayOn, agent.WithoutGateway(chosen, cfg)
	if a.record.GatewayReason != "" {
		a.record.Gateway = agent.GatewayOff
	}
}
