package fleet

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/internal/experiment/fleet/portable"
)

// loaded is an experiment on this machine.
type loaded struct {
	attempts Attempts
	trees    jetstream.ObjectStore
	spec     *portable.Experiment
	warm     bool
}

// objectError says which object could not be read.
type objectError struct {
	hash string
	err  error
}

func (e *objectError) Error() string { return e.err.Error() }
func (e *objectError) Unwrap() error { return e.err }

// load makes the executor of the pool, once, and fetches the files that an attempt needs.
func (p *workPool) load(ctx context.Context, l *leased) (*loaded, error) {
	p.ready.Lock()
	defer p.ready.Unlock()
	here := p.loaded[l.work.Spec]
	if here == nil {
		var err error
		if here, err = p.open(ctx, l.work.Spec); err != nil {
			return nil, fmt.Errorf("load the experiment: %w", err)
		}
		p.loaded[l.work.Spec] = here
	}
	return here, p.fetchTrees(ctx, here, &l.work)
}

// maxSpec bounds the description of an experiment.
const maxSpec = 256 << 20

// readSpec reads the description of an experiment.
func (p *workPool) readSpec(ctx context.Context, trees jetstream.ObjectStore, hash string) (*portable.Experiment,
	error,
) {
	from, err := p.cfg.Hub.openObject(ctx, trees, hash)
	var content []byte
	if err == nil {
		content, err = io.ReadAll(io.LimitReader(from, maxSpec))
	}
	if err != nil {
		return nil, &objectError{hash, err}
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != hash {
		return nil, &objectError{hash, errContent}
	}
	spec := &portable.Experiment{}
	return spec, json.Unmarshal(content, spec)
}

func (p *workPool) open(ctx context.Context, hash string) (*loaded, error) {
	trees, err := p.cfg.Hub.js.ObjectStore(ctx, treesBucket)
	if err != nil {
		return nil, err
	}
	spec, err := p.readSpec(ctx, trees, hash)
	if err != nil {
		return nil, err
	}
	if err := spec.Unpack(p.trees, filepath.Join(p.dir, "empty"), p.environ); err != nil {
		return nil, err
	}
	info := p.announced()
	spec.Only(info.Arms)
	spec.Prepared.Isolation = cmp.Or(spec.Prepared.Isolation, info.Needs.Isolation)
	if err := p.cfg.Policy.check(info.By, spec); err != nil {
		return nil, err
	}
	here := &loaded{trees: trees, spec: spec}
	here.attempts, err = p.cfg.Executor(p.ctx, Job{
		Prepared: spec.Prepared,
		Sink:     p,
		Pull:     spec.Pull,
		Dir:      filepath.Join(p.dir, "jobs", strconv.FormatInt(p.jobs.Add(1), 10)),
	})
	return here, err
}

// fetchTrees makes sure that the files of a cell are here. Where tasks want warm build caches,
// those of all tasks are fetched, once.
func (p *workPool) fetchTrees(ctx context.Context, here *loaded, w *work) error {
	wanted := slices.Clone(here.spec.Shared)
	arms := []string{w.Cell.Arm}
	tasks := []string{w.Cell.TaskID}
	family := here.spec.Prepared.Family
	if w.Probe {
		arms, tasks = p.announced().Arms, []string{family.Tasks[0].ID}
	}
	for i := range family.Tasks {
		if !here.warm && len(family.Tasks[i].Settings.Cache) > 0 {
			tasks = append(tasks, family.Tasks[i].ID)
		}
	}
	for _, arm := range arms {
		wanted = append(wanted, here.spec.Arms[arm]...)
	}
	for _, id := range tasks {
		wanted = append(wanted, here.spec.Tasks[id]...)
	}
	for _, hash := range wanted {
		if err := p.cfg.Hub.fetchTree(ctx, here.trees, p.trees, hash); err != nil {
			return &objectError{hash, err}
		}
	}
	if err := here.spec.InTrees(p.trees, arms, tasks); err != nil {
		return err
	}
	if !here.warm {
		if err := here.attempts.Warm(ctx); err != nil {
			return err
		}
		here.warm = true
	}
	return nil
}
