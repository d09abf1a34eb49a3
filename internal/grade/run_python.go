package grade

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/workspace"
)

// noPytest is the message for a suite that needs pytest if it is not installed.
const noPytest = "no python3 on the search path has pytest: install it (on Debian: apt-get install python3-pytest; " +
	"elsewhere: python3 -m pip install pytest), or say tests: {runner: unittest} in task.yaml"

// pythonProbe limits the check whether an interpreter has pytest.
const pythonProbe = 30 * time.Second

// tryPython runs one file of tests with unittest or pytest under our runner.
func (s *suiteRun) tryPython(ctx context.Context, check task.Check, want expectation) (evidence, error) {
	runner, err := s.asset("runner.py", pythonRunner)
	if err != nil {
		return evidence{}, err
	}
	mode, interpreter := "unittest", "python3"
	if s.suite.Runner.Parser == task.ParserPytest {
		mode = "pytest"
		if interpreter, err = s.Baseline.pytest(ctx, s); err != nil {
			return evidence{}, err
		}
		if interpreter == "" {
			return evidence{cannotRun: noPytest}, nil
		}
	}
	noCache := s.copied.TmpDir + "/pycache"
	argv := []string{interpreter, "-I", "-B", runner, mode, check.File, noCache}
	return s.tryWitnessed(ctx, check, newPads(want.names), argv, nil)
}

// pytest finds the first interpreter of the search path that has pytest; empty if there is none.
// The first interpreter need not have it: it may belong to a version manager, while the system's
// own has the packages.
func (b *Baseline) pytest(ctx context.Context, s *suiteRun) (string, error) {
	searchPath := s.place.Env["PATH"]
	key := "pytest " + s.place.Isolation.Kind + " " + searchPath + " " + imageOf(s.place)
	return b.texts.Get(ctx, key, func() (string, error) {
		candidates := interpreters(searchPath)
		if s.place.Isolation.Container != nil {
			candidates = []string{"python3"} // whichever the image has
		}
		for _, interpreter := range candidates {
			// Neither the agent's directory nor its code influences this.
			done, err := s.run(ctx, program{
				argv:     []string{interpreter, "-I", "-B", "-c", "import pytest"},
				dir:      s.private,
				place:    s.place,
				timeout:  pythonProbe,
				readable: []string{s.private},
			})
			if err != nil {
				return "", err
			}
			if done.failure == nil && done.status() == 0 {
				return interpreter, nil
			}
		}
		return "", nil
	})
}

// imageOf names the image that programs run in; empty if there is none.
func imageOf(place workspace.Place) string {
	if place.Isolation.Container == nil {
		return ""
	}
	return place.Isolation.Container.Config().Image.ID
}

// interpreters lists the python3 programs of a search path, in its order.
func interpreters(searchPath string) []string {
	var found []string
	for _, dir := range filepath.SplitList(searchPath) {
		candidate := filepath.Join(dir, "python3")
		info, err := os.Stat(candidate)
		if err == nil && filepath.IsAbs(candidate) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 &&
			!slices.Contains(found, candidate) {
			found = append(found, candidate)
		}
	}
	return found
}
