package session

import "strings"

// Recent remembers something about each of the keys that were set last. It forgets the older half
// when there are many, so that a stream of any length is read in flat memory. Its zero value is
// ready.
type Recent[V any] struct{ young, old map[string]V }

const recentKeys = 4096

// Get returns what is remembered about a key, or the zero value.
func (r *Recent[V]) Get(key string) V {
	if value, known := r.young[key]; known {
		return value
	}
	return r.old[key]
}

// Set remembers a value. The key may be a view of memory that is used again.
func (r *Recent[V]) Set(key string, value V) {
	if len(r.young) >= recentKeys {
		r.old, r.young = r.young, r.old
		clear(r.young)
	}
	if r.young == nil {
		r.young = map[string]V{}
	}
	r.young[strings.Clone(key)] = value
}
