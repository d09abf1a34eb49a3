package local

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/ledger"
)

// newGateway returns the gateway of all cells. Its files are where the next process removes what a
// killed one left.
func newGateway(cfg Config) *gateway.OnDemand {
	return &gateway.OnDemand{Config: gateway.Config{
		Policy:   cfg.Prepared.Policy,
		Rate:     cfg.Rate,
		Dir:      cfg.Work,
		Redactor: cfg.Machine.Redactor,
		Prices:   cfg.Machine.Prices,
		Now:      cfg.Machine.Now,
	}}
}

// gatewayOff returns why agents have no gateway; empty if they have one.
func gatewayOff(setup *experiment.Setup) string {
	if setup.Gateway == gateway.Off {
		return "it was switched off"
	}
	return ""
}

// gatewayOf connects agents to their models. Each becomes a member under its own name. The record
// keeps their calls; nil keeps none.
func (e *Executor) gatewayOf(as gateway.Member, record func() *gateway.Record) agent.Gateway {
	if off := gatewayOff(&e.prepared.Setup); off != "" {
		return agent.Gateway{Off: off}
	}
	return agent.Gateway{
		Join: func(cfg agent.Config, upstreams []gateway.Upstream) (*gateway.Seat, error) {
			member := as
			member.Name, member.Upstreams, member.OnCall = cfg.Name, upstreams, cfg.Called
			member.Account = cfg.Account
			if record != nil && record() != nil {
				if err := record().Enter(&member, cfg.OwnDirs()); err != nil {
					return nil, err
				}
			}
			return e.gateway.Join(member)
		},
	}
}

// modelURL returns the endpoint of an agent: its own, or none where a record answers its calls.
func modelURL(setup *experiment.Setup, own string) string {
	if setup.Offline() {
		return gateway.NoEndpoint
	}
	return own
}

var errNoRecording = errors.New("holds no record of this cell")

var errNotRecorded = errors.New("a request was not recorded")

// openCalls opens the record of the model calls of a trace, and what answers them.
func (a *attempt) openCalls(traceName string) (*gateway.Record, error) {
	cfg := gateway.RecordConfig{
		Path:     filepath.Join(a.dir, calls.Path(traceName)),
		Policy:   a.prepared.Policy,
		Redactor: a.redact,
	}
	cfg.Replay = ""
	if a.prepared.Replay != "" {
		if dir, found := a.replays[a.cell.Key()]; found {
			cfg.Replay, a.record.Replay = filepath.Join(dir, calls.Path(traceName)), a.prepared.Replay
		} else if a.prepared.Offline() {
			return nil, fmt.Errorf("%s %w", a.prepared.Replay, errNoRecording)
		}
	}
	return gateway.OpenRecord(cfg)
}

// keepCalls ends the record of an agent's calls and names it in the record of the attempt.
func (a *attempt) keepCalls() {
	if a.calls == nil {
		return
	}
	a.addReplayed(a.calls)
	if err := a.calls.Close(); err != nil {
		a.note("the record of model calls: %v", err)
	}
	a.nameCalls()
}

// nameCalls names the record of the agent's calls, if there is one.
func (a *attempt) nameCalls() {
	name := calls.Path(agentTrace)
	if _, err := os.Stat(filepath.Join(a.dir, name)); err == nil {
		a.record.CallsPath = a.artefact(name)
	}
}

// addReplayed adds what a record answered, and what that cost when it was recorded.
func (a *attempt) addReplayed(record *gateway.Record) {
	answered := record.Replayed()
	if answered == nil {
		return
	}
	r := &a.record
	if r.ReplayedCalls == nil {
		r.ReplayedCalls, r.OriginalCostUSD = new(int), new(float64)
	}
	*r.ReplayedCalls += answered.Calls
	r.ReplayDiffered += answered.Differed
	r.ReplayDifference = cmp.Or(r.ReplayDifference, answered.How)
	if r.OriginalCostUSD == nil || answered.OriginalUSD == nil {
		r.OriginalCostUSD = nil
		return
	}
	r.OriginalCostUSD = new(*r.OriginalCostUSD + *answered.OriginalUSD)
}

// findReplays finds the recorded attempts that answer the model calls of the cells. If a cell has
// several attempts, the last one that is not an error counts.
func (e *Executor) findReplays() error {
	if e.prepared.Replay == "" {
		return nil
	}
	contents, err := ledger.ReadFile(filepath.Join(e.prepared.Replay, experiment.LedgerFile))
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	e.replays = map[ledger.Cell]string{}
	for i := range contents.Records {
		r := &contents.Records[i]
		if r.Verdict == ledger.Error || r.CallsPath == "" || !filepath.IsLocal(filepath.FromSlash(r.RunDir)) {
			continue
		}
		e.replays[r.Cell()] = filepath.Join(e.prepared.Replay, filepath.FromSlash(r.RunDir))
	}
	if len(e.replays) == 0 {
		return fmt.Errorf("replay: %s holds no attempt whose model calls were recorded; run it with --record bodies",
			e.prepared.Replay)
	}
	return nil
}

// throughGateway connects the agents of the attempt to their models. Only they meet faults: probes
// and judges are not measured.
func (a *attempt) throughGateway() agent.Gateway {
	member := gateway.Member{Cell: a.cell.Name()}
	if a.number > 0 {
		member.FaultKey = fmt.Sprintf("%s/%d", a.cell.TaskID, a.cell.RunIndex)
	}
	way := a.gatewayOf(member, func() *gateway.Record { return a.calls })
	if join := way.Join; join != nil {
		way.Join = func(cfg agent.Config, upstreams []gateway.Upstream) (*gateway.Seat, error) {
			seat, err := join(cfg, upstreams)
			if err == nil {
				a.mu.Lock()
				a.seats = append(a.seats, seat)
				a.mu.Unlock()
			}
			return seat, err
		}
	}
	return way
}

// budgetError returns the error of a call that was refused because the arm or the experiment, and
// not the cell, has spent its budget, or because nobody knows what it costs; nil if there is none.
func (a *attempt) budgetError() *gateway.BudgetError {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, seat := range a.seats {
		empty, ok := errors.AsType[*gateway.BudgetError](seat.Limit())
		if ok && (empty.Unpriced || empty.Account.Above(a.account)) {
			return empty
		}
	}
	return nil
}

// noteGateway records whether the agent of a supervised session goes through the gateway.
func (a *attempt) noteGateway(cfg agent.Config) {
	chosen, err := a.machine.Registry.Get(a.arm.Agent)
	if err != nil {
		return // the session says so
	}
	cfg.Model = a.arm.Model
	a.record.Gateway, a.record.GatewayReason = gateway.On, agent.WithoutGateway(chosen, cfg)
	if a.record.GatewayReason != "" {
		a.record.Gateway = gateway.Off
	}
}
