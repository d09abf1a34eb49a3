package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
)

// loaded is an experiment on this machine.
type loaded struct {
	attempts Attempts
	files    jetstream.ObjectStore
	trees    jetstream.ObjectStore
	spec     *portable
	warm     bool
}

// load makes the executor of the pool, once, and fetches the files that an attempt needs.
func (p *workPool) load(ctx context.Context, l *leased) (*loaded, error) {
	p.ready.Lock()
	defer p.ready.Unlock()
	if p.loaded == nil {
		here, err := p.open(ctx)
		if err != nil {
			return nil, fmt.Errorf("load the experiment: %w", err)
		}
		p.loaded = here
	}
	return p.loaded, p.fetchTrees(ctx, p.loaded, &l.work)
}

func (p *workPool) open(ctx context.Context) (*loaded, error) {
	files, err := p.cfg.Hub.js.ObjectStore(ctx, filesBucket(p.info.Run))
	if err != nil {
		return nil, err
	}
	content, err := files.GetBytes(ctx, p.info.Spec)
	if err != nil {
		return nil, err
	}
	spec := &portable{}
	if err := json.Unmarshal(content, spec); err != nil {
		return nil, err
	}
	if err := spec.unpack(p.trees, filepath.Join(p.dir, "empty"), p.environ); err != nil {
		return nil, err
	}
	spec.only(p.info.Arms)
	spec.Prepared.Isolation = cmp.Or(spec.Prepared.Isolation, p.info.Needs.Isolation)
	trees, err := p.cfg.Hub.js.ObjectStore(ctx, treesBucket)
	if err != nil {
		return nil, err
	}
	here := &loaded{files: files, trees: trees, spec: spec}
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
		arms, tasks = p.info.Arms, []string{family.Tasks[0].ID}
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
		if err := fetchTree(ctx, here.trees, p.trees, hash); err != nil {
			return err
		}
	}
	if !here.warm {
		if err := here.attempts.Warm(ctx); err != nil {
			return err
		}
		here.warm = true
	}
	return nil
}
