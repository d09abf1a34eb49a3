package fleet

import (
	"cmp"
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/internal/experiment"
)

// maxProbeUSD bounds what one reply can cost.
const maxProbeUSD = 5

// Probe asks a worker of every pool for one reply of every arm's model.
func (e *Executor) Probe(ctx context.Context, record func(experiment.Probe) error) error {
	for _, p := range e.pools {
		if err := e.probePool(ctx, p, record); err != nil {
			return err
		}
	}
	return nil
}

// probePool probes one pool. If one key reports a failure, another key is asked as well: one key
// cannot keep an experiment from starting.
func (e *Executor) probePool(ctx context.Context, p *pool, record func(experiment.Probe) error) error {
	for again := false; ; again = true {
		w := e.ticketed(work{
			Protocol: Protocol,
			Run:      e.run,
			Pool:     p.Name,
			Probe:    true,
		})
		came, err := e.await(ctx, w, p)
		if err != nil {
			return err
		}
		result, _, err := e.fetchWhole(ctx, came)
		if err != nil {
			return err
		}
		wrong := e.checkProbes(result.Probes)
		if result.Error != "" {
			err = fmt.Errorf("worker %s: %s", result.Worker, result.Error)
		}
		if why := cmp.Or(wrong, err); why != nil && (wrong != nil || !again && e.Others(result.key)) {
			e.refuse(ctx, w, p, came, why)
			continue
		}
		for _, probe := range result.Probes {
			if err := record(probe); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		e.mu.Lock() // the next process probes again
		e.held -= came.size()
		delete(e.arrived, w.token())
		e.mu.Unlock()
		return e.done.Purge(ctx, jetstream.WithPurgeSubject(doneSubject(e.run, "*", w.token())))
	}
}

// checkProbes rejects replies that neither an arm nor the judge can have given.
func (e *Executor) checkProbes(probes []experiment.Probe) error {
	arms := e.cfg.Prepared.Arms
	if len(probes) > 2*len(arms)+1 { // an arm may have a lead
		return fmt.Errorf("%w: it has %d replies", errRecord, len(probes))
	}
	for _, p := range probes {
		if p.CostUSD != nil && !(*p.CostUSD >= 0 && *p.CostUSD <= maxProbeUSD) {
			return fmt.Errorf("%w: it says that a reply cost %.3g dollars", errRecord, *p.CostUSD)
		}
		if p.Tokens.Total() < 0 || p.Tokens.Total() > maxTokens || len(p.Who) > maxText {
			return fmt.Errorf("%w: no arm can have given this reply", errRecord)
		}
	}
	return nil
}
