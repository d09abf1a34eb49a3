package tracecli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/query"
)

// fileVerb makes a command that asks the same question of one or many files, named by --file or
// simply by name.
func (a *app) fileVerb(use, short, example string,
	run func(ctx context.Context, out *output, traces []*query.Trace) error,
) *cobra.Command {
	var files []string
	command := a.verb(use+" [FILE...]", short, example, cobra.ArbitraryArgs,
		func(ctx context.Context, out *output, args []string) error {
			traces, err := a.openAll(append(slices.Clone(files), args...))
			if err != nil {
				return err
			}
			out.multi = len(traces) > 1
			return run(ctx, out, traces)
		})
	command.Flags().StringArrayVar(&files, "file", nil, "a trace, or a `GLOB` with ** and {a,b} (repeatable)")
	return command
}

// eachVerb is a fileVerb that answers for one file after the other.
func (a *app) eachVerb(use, short, example string,
	answer func(ctx context.Context, out *output, t *query.Trace) error,
) *cobra.Command {
	return a.fileVerb(use, short, example, func(ctx context.Context, out *output, traces []*query.Trace) error {
		for _, t := range traces {
			if err := answer(ctx, out, t); err != nil {
				return err
			}
		}
		return out.end()
	})
}

// openAll resolves names and patterns. All files must be readable before anything is printed.
func (a *app) openAll(names []string) ([]*query.Trace, error) {
	paths, err := a.resolve(names)
	if err != nil {
		return nil, err
	}
	traces := make([]*query.Trace, len(paths))
	for i, path := range paths {
		if traces[i], err = a.open(path); err != nil {
			return nil, err
		}
	}
	return traces, nil
}

// resolve expands patterns. A name that exists is that file, whatever characters it has.
func (a *app) resolve(names []string) ([]string, error) {
	var paths []string
	for _, name := range names {
		if name == "-" || !strings.ContainsAny(name, "*?[]{}") || a.exists(name) {
			paths = append(paths, name)
			continue
		}
		matches, err := doublestar.FilepathGlob(a.con.Path(name), doublestar.WithFilesOnly())
		if err != nil {
			return nil, console.Usagef("pattern %q: %w", name, err)
		}
		for _, match := range matches {
			paths = append(paths, a.relative(name, match))
		}
	}
	if len(paths) == 0 {
		if len(names) > 0 {
			return nil, console.Usagef("no files match %s", strings.Join(names, " "))
		}
		return nil, console.Usagef("no files: name one, or use --file")
	}
	slices.Sort(paths)
	return paths, nil
}

func (a *app) exists(name string) bool {
	_, err := os.Stat(a.con.Path(name))
	return err == nil || errors.Is(err, os.ErrPermission)
}

// relative names a match the way the pattern named it.
func (a *app) relative(pattern, match string) string {
	if a.con.Dir == "" || filepath.IsAbs(pattern) {
		return match
	}
	if short, err := filepath.Rel(a.con.Dir, match); err == nil {
		return short
	}
	return match
}
