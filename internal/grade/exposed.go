package grade

import (
	"context"
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/sandbox/untrusted"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/tree"
)

// Exposure is what was seen to read hidden files of a task.
type Exposure struct {
	// Program are the files that a program under fit-untrusted could read.
	Program []string
	// Code are those that code in the process of the hidden tests could read, and Language is the
	// one that it tried it in; empty if none did. Interpreters read the running test from a file,
	// so code can as well.
	Code     []string
	Language string
	// Unloaded is set where no hidden test loaded the code that was to try it.
	Unloaded bool
}

// exposedFile is where code under test writes what it could read: in its working directory.
const exposedFile = "fit-exposed"

// exposedScript is a program that does the same.
const exposedScript = `for file; do if (: <"$file") 2>/dev/null; then echo "$file"; fi; done >>` + exposedFile

// Exposed tries to read the hidden files of a task: by a program that a hook or a test starts with
// fit-untrusted, and by code under test in the language of the suite. It tries nothing where
// programs are not isolated.
func Exposed(ctx context.Context, cfg Config) (found Exposure, err error) {
	var hidden []string
	if cfg.Task.Hooks.Invariants != "" {
		hidden = append(hidden, cfg.Task.Hooks.Invariants)
	}
	if suite := cfg.Task.Suite; suite != nil {
		for _, check := range suite.Checks {
			hidden = append(hidden, filepath.Join(suite.Dir, filepath.FromSlash(check.File)))
		}
	}
	if len(hidden) == 0 {
		return found, nil
	}
	g, err := newGrading(cfg)
	if err != nil {
		return found, err
	}
	defer g.close()
	s, err := g.openSuite(ctx)
	if err != nil {
		return found, err
	}
	defer func() { s.close() }()
	place := g.Source.Hook(s.copied.Dir)
	if place.Isolation.Untrusted == nil || !place.Isolation.Isolates() {
		return found, nil
	}
	argv := append([]string{untrusted.Name, "sh", "-c", exposedScript, "sh"}, hidden...)
	if _, err = g.run(ctx, program{argv: argv, dir: s.copied.Dir, place: place}); err != nil {
		return found, err
	}
	if found.Program, _, err = s.exposed("."); err != nil || len(s.suite.Checks) == 0 {
		return found, err
	}
	check := s.suite.Checks[0]
	if !s.suite.Runner.Own || s.language.probe == "" {
		suite := *s.suite
		suite.Runner = task.Runner{Command: append(argv, "{file}"), Parser: task.ParserExit}
		s.suite = &suite
		if _, err = s.tryCommand(ctx, check); err == nil {
			var more []string
			more, _, err = s.exposed(".")
			found.Program = slices.Compact(slices.Sorted(slices.Values(append(found.Program, more...))))
		}
		return found, err
	}
	found.Unloaded = true
	for _, check := range s.suite.Checks {
		dir, name := ".", check.File
		if s.language.compiled {
			dir, name = path.Dir(check.File), path.Base(check.File)
		}
		if err := s.plantProbe(check, append(hidden, name)); err != nil {
			return found, err
		}
		if _, err := s.try(ctx, check, expectation{}); err != nil {
			return found, err
		}
		files, tried, err := s.exposed(dir)
		if tried || err != nil {
			found.Code, found.Language, found.Unloaded = files, s.suite.Runner.Language, false
			return found, err
		}
	}
	return found, nil
}

// exposed returns what was read so far, and whether anything tried to.
func (s *suiteRun) exposed(dir string) (files []string, tried bool, err error) {
	name := filepath.Join(filepath.FromSlash(dir), exposedFile)
	if _, err := s.root.Lstat(name); err != nil {
		return nil, false, nil //nolint:nilerr // nothing has made it
	}
	content, err := readReport(s.root, name, maxReport)
	files = strings.FieldsFunc(string(content), func(r rune) bool { return r == '\n' })
	slices.Sort(files)
	return slices.Compact(files), true, errors.Join(err, tree.Remove(s.root, name))
}

// plantProbe makes the agent's code try to read files: a file of its own in the package of a check,
// for a compiled language, and otherwise at the end of every source.
func (s *suiteRun) plantProbe(check task.Check, files []string) error {
	list, err := json.Marshal(files)
	if err != nil {
		return err
	}
	probe := strings.ReplaceAll(s.language.probe, "FILES", strings.Trim(string(list), "[]"))
	if s.language.compiled {
		hidden, _, err := hiddenFile(s.suite.Dir, check.File)
		if err != nil {
			return err
		}
		source, err := parser.ParseFile(token.NewFileSet(), check.File, hidden, parser.PackageClauseOnly)
		if err != nil {
			return err
		}
		probe = "package " + strings.TrimSuffix(source.Name.Name, "_test") + "\n" + probe
		return place(s.root, path.Join(path.Dir(check.File), "fit_probe.go"), []byte(probe), 0o644)
	}
	return fs.WalkDir(s.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() != "." && entry.Name()[0] == '.'):
			return fs.SkipDir
		case !entry.Type().IsRegular() || !slices.Contains(s.language.sources, path.Ext(name)):
			return nil
		}
		source, err := s.root.ReadFile(name)
		if err != nil {
			return err
		}
		return place(s.root, name, append(source, probe...), 0o644)
	})
}
