// Package memo caches the results of slow lookups. Callers that ask for the same key at the same
// time share one lookup.
package memo

import (
	"context"
	"errors"
	"sync"
)

// Table caches values by key. Its zero value is ready for use.
type Table[V any] struct {
	mu      sync.Mutex
	entries map[string]*entry[V]
}

type entry[V any] struct {
	done      chan struct{} // closed when the lookup has ended
	value     V
	err       error
	cancelled bool // the caller of find gave up
}

// Get returns the cached value of a key, or the result of find. Callers that come while find runs
// wait for it and share its error, except that they look again if its caller's context has ended.
// Errors are not cached.
func (t *Table[V]) Get(ctx context.Context, key string, find func() (V, error)) (V, error) {
	for {
		known, asked := t.entry(key)
		if !asked {
			return t.fill(ctx, known, key, find)
		}
		select {
		case <-known.done:
		case <-ctx.Done():
			return *new(V), ctx.Err()
		}
		if !known.cancelled {
			return known.value, known.err
		}
	}
}

var errPanicked = errors.New("the lookup panicked")

// fill looks a value up. Callers that wait get its error, and one where it panics.
func (t *Table[V]) fill(ctx context.Context, known *entry[V], key string, find func() (V, error)) (V, error) {
	known.err = errPanicked
	defer func() {
		if known.err != nil {
			known.cancelled = ctx.Err() != nil
			t.mu.Lock()
			delete(t.entries, key)
			t.mu.Unlock()
		}
		close(known.done)
	}()
	known.value, known.err = find()
	return known.value, known.err
}

// entry returns the entry of a key, and reports whether it was there already.
func (t *Table[V]) entry(key string) (known *entry[V], asked bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known = t.entries[key]; known != nil {
		return known, true
	}
	if t.entries == nil {
		t.entries = map[string]*entry[V]{}
	}
	known = &entry[V]{done: make(chan struct{})}
	t.entries[key] = known
	return known, false
}
