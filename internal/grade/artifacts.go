package grade

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/workspace"
)

// ownContainer returns the container of a verifier that has its own. Only artifacts are copied
// there.
func (v *verification) ownContainer(ctx context.Context, space *workspace.Workspace) (workspace.Place, error) {
	place, err := space.Fresh(ctx, v.Environment, "verifier "+v.dir, v.Network)
	if err != nil {
		return place, err
	}
	place.Isolation.User = v.User
	container := place.Isolation.Container
	for i, artifact := range v.allArtifacts() {
		taken := v.artifactDir(i)
		if _, err := os.Stat(taken); err != nil {
			continue // the agent's container has none
		}
		to := artifact.Source
		if isOneFile(taken, path.Base(to)) {
			to = path.Dir(to)
		}
		if err := container.Lay(ctx, sandbox.Isolation{}, taken, to); err != nil {
			return place, fmt.Errorf("artifact %s: %w", artifact.Source, err)
		}
	}
	return place, nil
}

// allArtifacts returns the artifacts that every task has, and those that this one names.
func (v *verification) allArtifacts() []task.Artifact {
	return append([]task.Artifact{{Source: workspace.HarborArtifacts, Destination: "."}}, v.Artifacts...)
}

func (v *verification) artifactDir(i int) string {
	return filepath.Join(v.room, "artifacts", strconv.Itoa(i))
}

// isOneFile reports whether a directory holds a single file with that name, which was taken as a
// file and not as a directory.
func isOneFile(dir, name string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) == 1 && entries[0].Name() == name && entries[0].Type().IsRegular()
}

// takeArtifacts runs the commands that prepare artifacts, and takes and keeps these. A command that
// fails, and an artifact that is not there, are left for the verifier to judge.
func (v *verification) takeArtifacts(ctx context.Context, place workspace.Place) error {
	container := place.Isolation.Container
	for i, collect := range v.Collect {
		place.Isolation.User, place.Env["TMPDIR"] = collect.User, "/tmp"
		done, err := v.run(ctx, program{
			argv:    []string{"bash", "-c", imageHome + collect.Command},
			dir:     place.Dir,
			place:   place,
			timeout: collect.Timeout,
		})
		if err != nil {
			return err
		}
		said := append(done.stdout.Bytes(), done.stderr.Bytes()...)
		v.keep(path.Join(v.dir, fmt.Sprintf("collect-%d.log", i+1)),
			fmt.Appendf(said, "\nexit code %d\n", done.status()))
	}
	for i, artifact := range v.allArtifacts() {
		taken := v.artifactDir(i)
		err := container.Get(ctx, artifact.Source, taken, maxTaken)
		if err == nil {
			err = leaveOut(taken, artifact.Exclude)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case MachineFailed(err):
			return fmt.Errorf("take artifact %s: %w", artifact.Source, err)
		case err != nil: // it is not there, or too large
			if !errors.Is(err, fs.ErrNotExist) {
				v.note("artifact %s was not taken: %v", artifact.Source, err)
			}
			_ = os.RemoveAll(taken)
			continue
		}
		to := artifact.Destination
		if to == "" {
			if to = strings.TrimPrefix(artifact.Source, "/"); isOneFile(taken, path.Base(to)) {
				to = path.Dir(to)
			}
		}
		v.keepTree(path.Join(v.dir, "artifacts", to), taken)
	}
	logs := filepath.Join(v.room, "agent")
	switch err := container.Get(ctx, workspace.HarborAgentLogs, logs, maxTaken); {
	case err == nil:
		v.keepTree(path.Join(v.dir, "agent"), logs)
	case ctx.Err() == nil && !errors.Is(err, fs.ErrNotExist):
		v.note("%s was not kept: %v", workspace.HarborAgentLogs, err)
	}
	return ctx.Err()
}

// leaveOut removes files whose names match globs, and makes the others readable by everybody.
func leaveOut(dir string, globs []string) error {
	var patterns []glob.Pattern
	for _, source := range globs {
		pattern, err := glob.Compile(source)
		if err != nil {
			return err
		}
		patterns = append(patterns, pattern)
	}
	return filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if rel != "." && slices.ContainsFunc(patterns, func(p glob.Pattern) bool {
			return p.Match(filepath.ToSlash(rel)) || p.Match(filepath.Base(rel))
		}) {
			if err := os.RemoveAll(name); err != nil || !entry.IsDir() {
				return err
			}
			return fs.SkipDir
		}
		if entry.IsDir() {
			return os.Chmod(name, 0o755) //nolint:gosec // the directory above is ours alone
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return os.Chmod(name, info.Mode().Perm()|0o444)
	})
}
