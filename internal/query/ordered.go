package query

// ordered are rows by key, in the order of the keys' first appearance: sums and lists must not
// depend on the order of a map.
type ordered[T any] struct {
	places map[string]int
	rows   []T
}

// row returns the row of a key. It also reports whether the row is new, and thus empty. Without a
// key it always is. The row is valid until the next one is added.
func (o *ordered[T]) row(key *string) (row *T, isNew bool) {
	if key != nil {
		if place, known := o.places[*key]; known {
			return &o.rows[place], false
		}
		if o.places == nil {
			o.places = map[string]int{}
		}
		o.places[*key] = len(o.rows)
	}
	o.rows = append(o.rows, *new(T))
	return &o.rows[len(o.rows)-1], true
}

// find returns the row of a key, nil if there is none.
func (o *ordered[T]) find(key string) *T {
	if place, known := o.places[key]; known {
		return &o.rows[place]
	}
	return nil
}
