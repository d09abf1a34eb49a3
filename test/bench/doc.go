// Package bench measures the built binary beside something everybody knows, in one run, and gates
// on the ratio. It runs with make bench, not with make test: FIT_BENCH=1 switches it on.
package bench
