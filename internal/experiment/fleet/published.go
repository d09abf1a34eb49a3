package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/internal/experiment/fleet/portable"
	"github.com/fit-eval/fit/redact"
)

// How long the hub keeps a tree that no experiment needs, and the age at which one that is needed
// again is stored again, so that it is not removed at that moment.
const (
	treeLife    = 7 * 24 * time.Hour
	treeRefresh = treeLife - 24*time.Hour
)

// publishTrees stores the trees of the experiment where they are missing, and removes old ones that
// are not needed.
func (e *Executor) publishTrees(ctx context.Context, roots []portable.Root) error {
	store, err := e.cfg.Hub.js.ObjectStore(ctx, treesBucket)
	if err != nil {
		return err
	}
	e.trees = nil
	for _, r := range roots {
		if err := e.putRoot(ctx, store, r); err != nil {
			return fmt.Errorf("%s: %w", r.Path, err)
		}
		e.trees = append(e.trees, objectName(r.Hash))
	}
	slices.Sort(e.trees)
	if err := e.pruneTrees(ctx, store, time.Now().Add(-treeLife)); err != nil && ctx.Err() == nil {
		e.cfg.Note(fmt.Sprintf("old trees stay on the hub: %v", err))
	}
	return nil
}

// putRoot stores a tree unless it is there. One that is not what it should be is replaced.
func (e *Executor) putRoot(ctx context.Context, store jetstream.ObjectStore, r portable.Root) error {
	name := objectName(r.Hash)
	info, err := store.GetInfo(ctx, name)
	if err == nil && time.Since(info.ModTime) < treeRefresh {
		if err = e.cfg.Hub.checkTree(ctx, store, r.Hash); err == nil || !errors.Is(err, errContent) {
			return err
		}
		e.replaced = true
		e.cfg.Note(fmt.Sprintf("the hub's copy of %s was not what its name says: it is replaced", r.Path))
	} else if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return err
	}
	if err := e.searched(func(w io.Writer) error { return portable.Archive(w, r.Path, r.Skip) }); err != nil {
		return err
	}
	var hash string
	err = putObject(ctx, store, r.Hash, func(w io.Writer) (err error) {
		hash, _, err = packTree(w, r.Path, r.Skip)
		return err
	})
	if err == nil && hash != r.Hash {
		err = errors.Join(errors.New("it changed while it was read"), store.Delete(ctx, name))
	}
	return err
}

// putSpec stores the description of the experiment and returns its hash.
func (e *Executor) putSpec(ctx context.Context, content []byte) (string, error) {
	store, err := e.cfg.Hub.js.ObjectStore(ctx, treesBucket)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	hash := hex.EncodeToString(sum[:])
	e.trees = append(e.trees, objectName(hash))
	if from, err := e.cfg.Hub.openObject(ctx, store, hash); err == nil {
		old, err := io.ReadAll(io.LimitReader(from, maxSpec))
		if err == nil && bytes.Equal(old, content) {
			return hash, nil
		}
		e.replaced = true
	}
	return hash, putObject(ctx, store, hash, func(w io.Writer) error { _, err := w.Write(content); return err })
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

// searched writes something to nowhere and fails if it holds a secret that must not be sent, in any
// form that redaction finds.
func (e *Executor) searched(write func(io.Writer) error) error {
	search := &secretSearch{mark: newNonce()}
	named := map[string]string{}
	for name, value := range e.cfg.Secrets {
		if len(value) >= minSecret {
			named[name+"_"+search.mark] = value
		}
	}
	to := redact.New(redact.Config{Extra: named}).Writer(search)
	if err := errors.Join(write(to), to.Close()); err != nil {
		return err
	}
	if search.found != "" {
		return fmt.Errorf("it contains the value of %s, which would be sent to the workers; set it in the "+
			"environment of the workers", search.found)
	}
	return nil
}

// secretSearch looks for what redaction has put in the place of values whose names end with a mark.
type secretSearch struct {
	mark  string
	found string // the name of one that was there
	tail  []byte // of what was written: a name may be in two parts
}

// longestName bounds the names of variables that are found.
const longestName = 256

// Write implements io.Writer.
func (s *secretSearch) Write(p []byte) (int, error) {
	text := slices.Concat(s.tail, p)
	if at := bytes.Index(text, []byte("_"+s.mark+"]")); at >= 0 && s.found == "" {
		s.found = string(text[bytes.LastIndexByte(text[:at], ':')+1 : at])
	}
	s.tail = slices.Clone(text[max(0, len(text)-longestName):])
	return len(p), nil
}
