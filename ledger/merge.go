package ledger

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Cell identifies one repetition of one task by one arm, over all its attempts.
type Cell struct {
	Arm      string
	TaskID   string
	RunIndex int
}

// Cell returns the cell that the record is an attempt at.
func (r *Record) Cell() Cell { return Cell{Arm: r.Arm, TaskID: r.TaskID, RunIndex: r.RunIndex} }

// Merge unites the records of several ledgers of one experiment, usually its shards. The result
// does not depend on the order of the ledgers: it is sorted by task, run, arm and attempt. An
// attempt that is in two ledgers is an error, and so are ledgers of different experiments, unless
// all were read from results of other harnesses, which nobody planned.
func Merge(ledgers ...[]Record) ([]Record, error) {
	all := slices.Concat(ledgers...)
	slices.SortFunc(all, func(a, b Record) int { return compareKeys(a.Key(), b.Key()) })
	shareExperiment(all)
	var problems []error
	for i := 1; i < len(all); i++ {
		if all[i].Experiment != all[0].Experiment {
			return nil, fmt.Errorf("the ledgers belong to different experiments (%s and %s); they can be compared, "+
				"not merged", all[0].Experiment, all[i].Experiment)
		}
		if all[i].Key() == all[i-1].Key() {
			problems = append(problems, fmt.Errorf("attempt %s is in two ledgers", all[i].Key()))
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return all, nil
}

// shareExperiment gives records imported from several sources one experiment.
func shareExperiment(all []Record) {
	names := map[string]bool{}
	for i := range all {
		if all[i].Imported == nil {
			return
		}
		names[all[i].Experiment] = true
	}
	if len(names) < 2 {
		return
	}
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(maps.Keys(names)), "\n")))
	for i := range all {
		all[i].Experiment = fmt.Sprintf("imported-%x", sum[:8])
	}
}

func compareKeys(a, b Key) int {
	return cmp.Or(strings.Compare(a.TaskID, b.TaskID), cmp.Compare(a.RunIndex, b.RunIndex),
		strings.Compare(a.Arm, b.Arm), cmp.Compare(a.Attempt, b.Attempt))
}

// Write writes records as a new ledger with a new chain. Each record keeps the hash it had before
// in Origin.
func Write(w io.Writer, records []Record) error {
	head := ""
	for i := range records {
		record := records[i]
		if head == "" {
			head = genesis(record.Experiment)
		}
		if record.Origin == "" {
			record.Origin = record.Hash
		}
		record.Prev, record.Hash = "", ""
		line, hash, err := seal(&record, head, nil)
		if err != nil {
			return fmt.Errorf("write ledger: %w", err)
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("write ledger: %w", err)
		}
		head = hash
	}
	return nil
}

// Counting is Last without a copy where all records count and are in its order already: neither
// they nor what is returned may be changed then.
func Counting(records []Record) []Record {
	for i := 1; i < len(records); i++ {
		a, b := records[i-1].Key(), records[i].Key()
		if a.Attempt = b.Attempt; compareKeys(a, b) >= 0 {
			return Last(records)
		}
	}
	return records
}

// Last returns the record that counts for each cell, sorted by task, run and arm: the last attempt.
func Last(records []Record) []Record {
	last := map[Cell]int{}
	for i := range records {
		at, seen := last[records[i].Cell()]
		if !seen || records[i].Attempt > records[at].Attempt {
			last[records[i].Cell()] = i
		}
	}
	counting := make([]Record, 0, len(last))
	for _, at := range last {
		counting = append(counting, records[at])
	}
	slices.SortFunc(counting, func(a, b Record) int { return compareKeys(a.Key(), b.Key()) })
	return counting
}
