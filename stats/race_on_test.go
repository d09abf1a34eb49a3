//go:build race

package stats

// simulationShare scales simulations down where the race detector makes them ten times slower.
const simulationShare = 0.1
