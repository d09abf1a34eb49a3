package gateway

import "net/http"

// Faults makes calls fail on purpose.
type Faults struct{}

// Draw returns what happens to the n-th call of a cell.
func (f *Faults) Draw(string, int) Fault { return Fault{} }

// Fault is what happens to one call; the zero value is nothing.
type Fault struct{}

// Apply answers a call, by itself or by way of next, and reports whether it changed anything.
func (f Fault) Apply(w http.ResponseWriter, next func(http.ResponseWriter)) bool {
	next(w)
	return false
}
