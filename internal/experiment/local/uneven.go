package local

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/treatment"
	"github.com/fit-eval/fit/ledger"
)

// unevenInstructions warns of instruction files of the task that reach some of the agents that are
// compared and not others.
func unevenInstructions(arms []*start) []string {
	readers := map[string][]string{} // by file: the agents that read it, or the same text elsewhere
	names := map[string]string{}     // of a text: the files that hold it
	for _, s := range arms {
		for _, piece := range s.instructions() {
			names[piece.Digest] = piece.Path
			if !slices.Contains(readers[piece.Digest], s.declared.Agent) {
				readers[piece.Digest] = append(readers[piece.Digest], s.declared.Agent)
			}
		}
	}
	var warnings []string
	for _, digest := range slices.SortedFunc(maps.Keys(readers), func(x, y string) int {
		return strings.Compare(names[x], names[y])
	}) {
		var without []string
		for _, s := range arms {
			if !slices.Contains(readers[digest], s.declared.Agent) && s.readsTheTasks() &&
				!slices.Contains(without, s.declared.Agent) {
				without = append(without, s.declared.Agent)
			}
		}
		if len(without) > 0 {
			warnings = append(warnings, fmt.Sprintf("%s of task %s reaches %s and not %s: give all arms the same with "+
				"instructions:FILE, or none with context:none", names[digest], arms[0].attempt.task.ID,
				strings.Join(readers[digest], ", "), strings.Join(without, ", ")))
		}
	}
	return warnings
}

// unevenTasks warns of the tasks after the first in which one agent finds an instruction file and
// another finds none, by the names that they read.
func (s *stage) unevenTasks(ctx context.Context, arms []*start) []string {
	tasks := map[string]int{}
	for i := 1; i < len(s.prepared.Family.Tasks); i++ {
		read := map[string]string{} // by agent: the first file that it finds
		for _, one := range arms {
			if id := one.declared.Agent; one.readsTheTasks() && read[id] == "" {
				read[id] = s.instructionsOf(ctx, &s.prepared.Family.Tasks[i], id)
			}
		}
		for _, with := range slices.Sorted(maps.Keys(read)) {
			for _, without := range slices.Sorted(maps.Keys(read)) {
				if read[with] != "" && read[without] == "" {
					tasks[fmt.Sprintf("%s reaches %s and not %s", read[with], with, without)]++
				}
			}
		}
	}
	var warnings []string
	for _, what := range slices.Sorted(maps.Keys(tasks)) {
		warnings = append(warnings, fmt.Sprintf("in %d of the other tasks %s: give all arms the same with "+
			"instructions:FILE, or none with context:none", tasks[what], what))
	}
	return warnings
}

// instructionsOf returns the first instruction file of a task that an agent reads; empty: none.
func (s *stage) instructionsOf(ctx context.Context, t *task.Task, id string) string {
	chosen, err := s.machine.Registry.Get(id)
	if err != nil {
		return "" // preparing the experiment has found it
	}
	for _, place := range chosen.Info().Places.Instructions {
		if !strings.ContainsAny(place, "*?[") && taskHas(ctx, t, place) {
			return place
		}
	}
	return ""
}

// readsTheTasks reports whether the arm leaves the instruction files of the task to its agent.
func (s *start) readsTheTasks() bool {
	return s.declared.Context != agent.ContextNone && s.declared.Instructions == ""
}

// instructions returns the instruction files of the task that reach the agent.
func (s *start) instructions() []treatment.Piece {
	if !s.readsTheTasks() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.pieces), func(p treatment.Piece) bool {
		return p.Kind != ledger.PieceInstructions || p.From != ledger.FromTask
	})
}
