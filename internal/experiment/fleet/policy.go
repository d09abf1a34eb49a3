package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/fleet/portable"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/task"
)

// Policy is what the owner of a worker allows, whatever experiments ask for. The zero value demands
// isolation and allows everything else.
type Policy struct {
	// Unisolated allows agents without isolation.
	Unisolated bool
	// Agents, Networks and Images are those that are allowed, and Coordinators the keys whose
	// experiments are; empty: all. Images are patterns.
	Agents, Networks, Images, Coordinators []string
	// MaxUSD bounds what an attempt may cost; 0: it is not bounded.
	MaxUSD float64
}

// errPolicy is returned for an experiment that the policy of a worker does not allow.
var errPolicy = errors.New("not allowed on this worker")

// checkPool looks at what is known of an experiment before an attempt is taken.
func (p *Policy) checkPool(info *poolInfo) error {
	if len(p.Coordinators) > 0 && !slices.Contains(p.Coordinators, info.By) {
		return fmt.Errorf("experiments of key %.60s are %w", info.By, errPolicy)
	}
	for id := range info.Needs.Agents {
		if err := p.agent(id); err != nil {
			return err
		}
	}
	return p.isolation(info.Needs.Isolation)
}

func (p *Policy) agent(id string) error {
	if len(p.Agents) > 0 && !slices.Contains(p.Agents, id) {
		return fmt.Errorf("agent %.60s is %w", id, errPolicy)
	}
	return nil
}

func (p *Policy) isolation(mode string) error {
	if !p.Unisolated && mode == sandbox.IsolationNone {
		return fmt.Errorf("isolation none is %w: it demands isolation", errPolicy)
	}
	return nil
}

// check looks at an experiment, and bounds what it may spend.
func (p *Policy) check(coordinator string, spec *portable.Experiment) error {
	if len(p.Coordinators) > 0 && !slices.Contains(p.Coordinators, coordinator) {
		return fmt.Errorf("experiments of key %.60s are %w", coordinator, errPolicy)
	}
	prepared := spec.Prepared
	for i := range prepared.Arms {
		if err := cmp.Or(p.agent(prepared.Arms[i].Agent), p.lead(prepared.Arms[i].Lead)); err != nil {
			return err
		}
	}
	for i := range prepared.Family.Tasks {
		t := &prepared.Family.Tasks[i]
		mode := cmp.Or(prepared.Isolation, t.Settings.Isolation)
		if err := cmp.Or(p.isolation(mode), p.network(prepared, t)); err != nil {
			return err
		}
		if !p.Unisolated && t.Settings.Environment == nil { // not what works, which may be none
			t.Settings.Isolation = cmp.Or(t.Settings.Isolation, sandbox.IsolationBwrap)
		}
		if env := t.Settings.Environment; env != nil && len(p.Images) > 0 && !p.image(env.Image) {
			return fmt.Errorf("image %.80q is %w", env.Image, errPolicy)
		}
	}
	if limit := prepared.CellBudget.USD; p.MaxUSD > 0 && (limit == 0 || limit > p.MaxUSD) {
		prepared.CellBudget.USD = p.MaxUSD
	}
	return nil
}

func (p *Policy) lead(id string) error {
	if id == "" {
		return nil
	}
	return p.agent(id)
}

// network looks at what the agents of a task reach. A task that would be content with more does not
// get it.
func (p *Policy) network(prepared *experiment.Prepared, t *task.Task) error {
	if len(p.Networks) == 0 {
		return nil
	}
	t.Settings.AgentNetwork.Required = true
	if mode := cmp.Or(prepared.Network, t.Settings.AgentNetwork.Kind); !slices.Contains(p.Networks, mode) {
		return fmt.Errorf("network %.40s is %w", mode, errPolicy)
	}
	return nil
}

// image reports whether an image is allowed. One that is built from what travelled has no name.
func (p *Policy) image(name string) bool {
	return slices.ContainsFunc(p.Images, func(pattern string) bool {
		matches, err := path.Match(pattern, name)
		return err == nil && matches && name != ""
	})
}

// refuse notes that the policy does not allow a pool, for the coordinator to see.
func (p *workPool) refuse(err error) {
	p.mu.Lock()
	p.refuses[p.info.key()] = err.Error()
	p.mu.Unlock()
	p.cfg.Note(fmt.Sprintf("%s: %v", p.info.Title, err))
}
