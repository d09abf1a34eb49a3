package grade

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/fit-eval/fit/internal/sandbox/untrusted"
)

// Exposed tries to read the hidden files of a task from a program that a hook starts by
// fit-untrusted, and returns those that it could read. It tries nothing where programs are not
// isolated.
func Exposed(ctx context.Context, cfg Config) ([]string, error) {
	var hidden []string
	if cfg.Task.Hooks.Invariants != "" {
		hidden = append(hidden, cfg.Task.Hooks.Invariants)
	}
	if suite := cfg.Task.Suite; suite != nil {
		for _, check := range suite.Checks {
			hidden = append(hidden, filepath.Join(suite.Dir, filepath.FromSlash(check.File)))
		}
	}
	g, err := newGrading(cfg)
	if err != nil || len(hidden) == 0 {
		return nil, err
	}
	defer g.close()
	copied, err := g.copy(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = copied.Remove() }()
	place := g.Source.Hook(copied.Dir)
	if place.Isolation.Untrusted == nil || !place.Isolation.Isolates() || place.Isolation.Container != nil {
		return nil, nil
	}
	const script = `for file; do if [ -r "$file" ]; then echo "$file"; fi; done`
	var printed capture
	_, err = g.run(ctx, program{
		argv:  append([]string{untrusted.Name, "sh", "-c", script, "sh"}, hidden...),
		dir:   copied.Dir,
		place: place,
		watch: &printed,
	})
	return strings.FieldsFunc(string(printed.data), func(r rune) bool { return r == '\n' }), err
}
