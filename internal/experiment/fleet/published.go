package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// How long the hub keeps a tree that no experiment needs, and the age at which one that is needed
// again is stored again, so that it is not removed at that moment.
const (
	treeLife    = 7 * 24 * time.Hour
	treeRefresh = treeLife - 24*time.Hour
)

// publishTrees stores the trees of the experiment where they are missing, and removes old ones that
// are not needed.
func (e *Executor) publishTrees(ctx context.Context, roots []root) error {
	store, err := e.cfg.Hub.js.ObjectStore(ctx, treesBucket)
	if err != nil {
		return err
	}
	e.trees = nil
	for _, r := range roots {
		if err := e.putRoot(ctx, store, r); err != nil {
			return fmt.Errorf("%s: %w", r.path, err)
		}
		e.trees = append(e.trees, r.hash)
	}
	slices.Sort(e.trees)
	if err := e.pruneTrees(ctx, store, time.Now().Add(-treeLife)); err != nil && ctx.Err() == nil {
		e.cfg.Note(fmt.Sprintf("old trees stay on the hub: %v", err))
	}
	return nil
}

// putRoot stores a tree unless it is there.
func (e *Executor) putRoot(ctx context.Context, store jetstream.ObjectStore, r root) error {
	info, err := store.GetInfo(ctx, r.hash)
	if err == nil && time.Since(info.ModTime) < treeRefresh {
		return nil
	} else if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return err
	}
	search := &secretSearch{values: e.cfg.Secrets}
	if err := packed(search, r.path, r.skip); err != nil {
		return err
	}
	if search.found != "" {
		return fmt.Errorf("its files contain the value of $%s, which would be sent to the workers; set it in the "+
			"workers' environment instead", search.found)
	}
	hash, err := putTree(ctx, store, r.hash, r.path, r.skip)
	if err == nil && hash != r.hash {
		err = errors.Join(errors.New("it changed while it was read"), store.Delete(ctx, r.hash))
	}
	return err
}

// pruneTrees removes trees that were stored before a time and that no experiment needs.
func (e *Executor) pruneTrees(ctx context.Context, store jetstream.ObjectStore, before time.Time) error {
	stored, err := store.List(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
		return err
	}
	pools, err := e.livingPools(ctx, before)
	if err != nil {
		return err
	}
	needed := map[string]bool{}
	for _, hash := range e.trees {
		needed[hash] = true
	}
	for i := range pools {
		for _, hash := range pools[i].Trees {
			needed[hash] = true
		}
	}
	for _, tree := range stored {
		if needed[tree.Name] || !tree.ModTime.Before(before) {
			continue
		}
		if err := store.Delete(ctx, tree.Name); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
			return err
		}
	}
	return nil
}

// livingPools returns the pools of all experiments. Pools that are older than a time and have no
// coordinator are removed: they are abandoned.
func (e *Executor) livingPools(ctx context.Context, before time.Time) ([]poolInfo, error) {
	pools, err := e.cfg.Hub.pools(ctx)
	if err != nil {
		return nil, err
	}
	coordinated, err := e.cfg.Hub.coordinated(ctx)
	if err != nil {
		return nil, err
	}
	kv, err := e.cfg.Hub.bucket(ctx, fleetBucket)
	if err != nil {
		return nil, err
	}
	var living []poolInfo
	for i := range pools {
		entry, err := kv.Get(ctx, pools[i].key())
		if err != nil || coordinated[pools[i].Run] || pools[i].Run == e.run || !entry.Created().Before(before) {
			living = append(living, pools[i])
			continue
		}
		if err := e.cfg.Hub.removeRun(ctx, pools[i].Run, pools[i:i+1]); err != nil {
			return nil, err
		}
	}
	return living, nil
}

// minSecret is the shortest value that is looked for.
const minSecret = 6

// secretSearch looks for values in what is written to it.
type secretSearch struct {
	values map[string]string // by name
	found  string            // the name of one that was there
	tail   []byte            // of what was written: a value may be in two parts
}

var _ io.Writer = (*secretSearch)(nil)

// Write implements io.Writer.
func (s *secretSearch) Write(p []byte) (int, error) {
	if s.found != "" {
		return len(p), nil
	}
	text := slices.Concat(s.tail, p)
	longest := 0
	for _, name := range slices.Sorted(maps.Keys(s.values)) {
		value := s.values[name]
		if len(value) < minSecret {
			continue
		}
		longest = max(longest, len(value))
		if bytes.Contains(text, []byte(value)) {
			s.found = name
			return len(p), nil
		}
	}
	s.tail = slices.Clone(text[max(0, len(text)-max(longest-1, 0)):])
	return len(p), nil
}
