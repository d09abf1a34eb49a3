package grade

import (
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/tree"
)

// tryNode runs one file of node:test tests in its own process, under our reporter.
func (s *suiteRun) tryNode(ctx context.Context, check task.Check, want expectation) (evidence, error) {
	reporter, err := s.asset("reporter.mjs", nodeReporter)
	if err != nil {
		return evidence{}, err
	}
	main, err := s.asset("main.mjs", nodeMain)
	if err != nil {
		return evidence{}, err
	}
	if _, err := s.asset("guard.cjs", nodeGuard); err != nil {
		return evidence{}, err
	}
	secrets := newPads(want.names)
	secrets.Loaded = secret()
	for _, file := range append([]string{check.File}, s.suite.Support...) {
		secrets.Files = append(secrets.Files, filepath.Join(s.copied.Dir, filepath.FromSlash(file)))
	}
	argv := []string{
		"node", "--import", reporter, "--test-reporter", reporter, "--test-reporter-destination", "stdout",
		main, "./" + check.File,
	}
	return s.tryWitnessed(ctx, check, secrets, argv, map[string]string{"NODE_OPTIONS": "", "NODE_PATH": ""})
}

// tryWitnessed stages a check, runs it under a reporter that holds the secrets, and takes the check
// away again.
func (s *suiteRun) tryWitnessed(ctx context.Context, check task.Check, secrets pads, argv []string,
	env map[string]string,
) (evidence, error) {
	if err := stage(s.root, s.suite.Dir, check.File); MachineFailed(err) {
		return evidence{}, err
	} else if err != nil {
		return evidence{cannotRun: "stage failed: " + err.Error()}, nil
	}
	// The next check, and processes that the agent left running, must not see this one.
	defer func() { _ = tree.Remove(s.root, check.File) }()
	stdin, err := json.Marshal(secrets)
	if err != nil {
		return evidence{}, err
	}
	watch := newWitness(secrets)
	done, err := s.run(ctx, program{
		argv:     argv,
		dir:      s.copied.Dir,
		place:    s.place,
		env:      env,
		stdin:    stdin,
		watch:    watch,
		timeout:  s.Task.Settings.Timeouts.Test,
		readable: []string{s.private},
		hidden:   []string{filepath.Join(s.copied.Dir, filepath.FromSlash(check.File))},
	})
	if err != nil {
		return evidence{}, err
	}
	shown := s.evidenceOf(check.Name, done)
	shown.report = watch.report
	shown.report.tidy(s.Redactor)
	shown.died = shown.died || shown.silent()
	return shown, nil
}
