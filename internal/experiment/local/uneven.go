package local

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/git"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/treatment"
	"github.com/fit-eval/fit/internal/tree"
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

// unevenTasks warns of instruction files of the tasks after the first that reach some of the agents
// and not others, by what is in them.
func (s *stage) unevenTasks(ctx context.Context, arms []*start) ([]string, error) {
	places := map[string]agent.Places{} // of the agents that read the tasks'
	for _, one := range arms {
		if chosen, err := s.machine.Registry.Get(one.declared.Agent); err == nil && one.readsTheTasks() {
			places[one.declared.Agent] = chosen.Info().Places
		}
	}
	if len(places) < 2 {
		return nil, nil
	}
	tasks := map[string]int{}
	for i := 1; i < len(s.prepared.Family.Tasks); i++ {
		found, err := s.unevenIn(ctx, &s.prepared.Family.Tasks[i], places)
		if err != nil {
			return nil, err
		}
		for _, what := range found {
			tasks[what]++
		}
	}
	var warnings []string
	for _, what := range slices.Sorted(maps.Keys(tasks)) {
		warnings = append(warnings, fmt.Sprintf("in %d of the other tasks %s: give all arms the same with "+
			"instructions:FILE, or none with context:none", tasks[what], what))
	}
	return warnings, nil
}

// unevenIn says which files of a task reach one agent and no text of them another.
func (s *stage) unevenIn(ctx context.Context, t *task.Task, places map[string]agent.Places) ([]string, error) {
	dir, err := os.MkdirTemp(s.dir, "instructions-")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range places {
		names = append(names, p.Instructions...)
	}
	if err := layFiles(ctx, t, names, dir); err != nil {
		return nil, fmt.Errorf("task %s: %w", t.ID, err)
	}
	read := map[string]map[string]string{} // by agent and digest: the file
	for id, p := range places {
		pieces, err := treatment.Find(dir, agent.Places{
			Instructions: p.Instructions,
			OneOf:        p.OneOf,
			Imports:      p.Imports,
		})
		if err != nil {
			return nil, err
		}
		read[id] = map[string]string{}
		for _, piece := range pieces {
			read[id][piece.Digest] = piece.Path
		}
	}
	var found []string
	for with, files := range read {
		for digest, file := range files {
			for without := range read {
				if _, there := read[without][digest]; !there {
					found = append(found, fmt.Sprintf("%s reaches %s and not %s", file, with, without))
				}
			}
		}
	}
	return found, nil
}

// layFiles writes some files and directories of a task into a directory, as far as they can be
// known before a working directory is made: those of its repository and its overlays.
func layFiles(ctx context.Context, t *task.Task, names []string, dir string) error {
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		to := filepath.Join(dir, filepath.FromSlash(name))
		for _, overlay := range slices.Backward(t.Overlays) {
			rest, below := placeIn(overlay, name)
			if _, err := os.Lstat(filepath.Join(overlay.From, rest)); below && err == nil {
				if err := layFile(ctx, filepath.Join(overlay.From, rest), to); err != nil {
					return err
				}
				break
			}
		}
		if _, err := os.Stat(to); err == nil || t.Settings.Repo == "" {
			continue
		}
		var out bytes.Buffer
		err := git.Run(ctx, git.Command{
			Dir:    t.Settings.Repo,
			Args:   []string{"cat-file", "--batch", "--follow-symlinks"},
			Stdin:  strings.NewReader(cmp.Or(t.Settings.Ref, "HEAD") + ":" + name + "\n"),
			Stdout: &out,
		})
		head, text, _ := strings.Cut(out.String(), "\n")
		if err != nil || !strings.Contains(head, " blob ") && !strings.Contains(head, " tree ") {
			continue // it is not there
		}
		text = strings.TrimSuffix(text, "\n")
		err = errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, []byte(text), 0o600))
		if err != nil {
			return err
		}
	}
	return nil
}

func layFile(ctx context.Context, from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return nil //nolint:nilerr // a link to nothing
	}
	if info.IsDir() {
		if err := os.MkdirAll(to, 0o700); err != nil {
			return err
		}
		return tree.Copy{Follow: true}.Dir(ctx, from, to)
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, text, 0o600))
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
