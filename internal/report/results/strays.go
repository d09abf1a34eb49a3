package results

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/ledger"
)

// stray is the kind of a problem with a sealed record that the experiment cannot have made.
const stray = "stray"

// Strays returns what is wrong with the records of a run directory that its experiment cannot have
// made: they are not in the plan, were never started, or share a directory. Whoever seals a ledger
// again can write anything into it, and such a record is no evidence. A directory without a journal
// does not say what was started.
func Strays(dir string, plan *experiment.Plan, records []ledger.Record) ([]ledger.Problem, error) {
	starts, err := experiment.ReadStarts(dir)
	if err != nil {
		return nil, err
	}
	journal, started := isFile(filepath.Join(dir, experiment.AttemptsFile)), map[ledger.Key]bool{}
	for i := range starts {
		started[starts[i].Key] = true
	}
	slots := map[experiment.Slot]bool{}
	for _, slot := range plan.Slots() {
		slots[slot] = true
	}
	hashes := map[string]string{}
	for i := range plan.Arms {
		hashes[plan.Arms[i].Name] = plan.Arms[i].Hash
	}
	owners := map[string]ledger.Key{}
	var problems []ledger.Problem
	for i := range records {
		r := &records[i]
		hash, planned := hashes[r.Arm]
		owner, shared := owners[r.RunDir]
		var why string
		switch {
		case !planned || !slots[experiment.Slot{TaskID: r.TaskID, RunIndex: r.RunIndex}]:
			why = "is not in the plan"
		case hash != "" && r.ArmHash != hash:
			why = "is not of this experiment: its arm is not the one that was planned"
		case journal && !started[r.Key()]:
			why = "was never started: it is not in " + experiment.AttemptsFile
		case r.RunDir != "" && shared:
			why = "shares its directory with " + owner.String()
		default:
			owners[r.RunDir] = r.Key()
			continue
		}
		problems = append(problems, ledger.Problem{
			Line:    i + 1,
			Kind:    stray,
			Message: fmt.Sprintf("attempt %s %s", r.Key(), why),
		})
	}
	return problems, nil
}

// without leaves out the records in which there are problems.
func without(records []ledger.Record, problems []ledger.Problem) []ledger.Record {
	var kept []ledger.Record
	for i := range records {
		if !slices.ContainsFunc(problems, func(p ledger.Problem) bool { return p.Line == i+1 }) {
			kept = append(kept, records[i])
		}
	}
	return kept
}
