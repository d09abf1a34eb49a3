// Package memo finds things out once for everybody who asks.
package memo

import (
	"context"
	"errors"
	"sync"
)

// Table remembers what was found out, by key. Its zero value is ready for use.
type Table[V any] struct {
	mu      sync.Mutex
	entries map[string]*entry[V]
}

type entry[V any] struct {
	done  chan struct{} // closed when the search has ended
	value V
	err   error
}

// Get returns what find returned to the first who asked for the key. Others who ask meanwhile wait
// for it, and get its error too; but whoever waited for a search that was cancelled searches again.
// What was not found is not remembered.
func (t *Table[V]) Get(ctx context.Context, key string, find func() (V, error)) (V, error) {
	for {
		known, asked := t.entry(key)
		if !asked {
			if known.value, known.err = find(); known.err != nil {
				t.mu.Lock()
				delete(t.entries, key)
				t.mu.Unlock()
			}
			close(known.done)
			return known.value, known.err
		}
		select {
		case <-known.done:
		case <-ctx.Done():
			return *new(V), ctx.Err()
		}
		if !errors.Is(known.err, context.Canceled) && !errors.Is(known.err, context.DeadlineExceeded) {
			return known.value, known.err
		}
	}
}

// entry returns the entry of a key, and whether somebody has asked for it before.
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
