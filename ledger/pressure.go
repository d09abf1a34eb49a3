package ledger

import (
	"fmt"
	"slices"
	"strings"
)

// Waited names what programs of the machine had to wait for during an attempt, so long that a time
// limit says little about the agent; empty where they did not, or where the kernel does not tell.
func (r *Record) Waited() string {
	var found []string
	for what, least := range map[string]float64{"cpu": 0.5, "memory": 0.1, "io": 0.5} {
		if share := r.Pressure[what]; share >= least {
			found = append(found, fmt.Sprintf("%s for %.0f%% of the time", what, 100*share))
		}
	}
	slices.Sort(found)
	return strings.Join(found, ", ")
}
