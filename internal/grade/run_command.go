package grade

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/tree"
)

// Command is one command that is run on a copy as a check, and whose report is trusted.
type Command struct {
	Name string
	// Argv may contain {nonce} and {dir}.
	Argv    []string
	Parser  string // as in task.Runner
	Gate    bool
	Timeout time.Duration
}

// CommandResult is the result of one command to verify.
type CommandResult struct {
	Name     string `json:"name"`
	Passed   bool   `json:"passed"`
	ExitCode int    `json:"exitCode"` // 124 when it was stopped by a bound of ours
	TimedOut bool   `json:"timedOut,omitempty"`
	StartMs  int64  `json:"startMs"`
	EndMs    int64  `json:"endMs"`
	// Error is why the command could not be started.
	Error string `json:"error,omitempty"`
	// Output is the file in Config.Artifacts with what it printed; empty if it printed nothing.
	Output string `json:"output,omitempty"`
}

// verify runs a command and makes its row.
func (s *suiteRun) verify(ctx context.Context, command Command, found *graded) error {
	shown, err := s.tryVerify(ctx, command)
	if err != nil {
		return err
	}
	reason := shown.failure(expectation{})
	try := func(ctx context.Context, s *suiteRun) (evidence, error) { return s.tryVerify(ctx, command) }
	if err := s.blame(ctx, "the command "+command.Name, shown, expectation{}, try, found); err != nil {
		return err
	}
	found.rows = append(found.rows, testRow(command.Name, command.Gate, 0, reason == "", s.Redactor.String(reason)))
	found.commands = append(found.commands, CommandResult{
		Name:     command.Name,
		Passed:   reason == "",
		ExitCode: shown.status,
		TimedOut: shown.timedOut,
		StartMs:  shown.startMs,
		EndMs:    shown.endMs,
		Error:    shown.cannotRun,
		Output:   s.kept(outputFile(command.Name)),
	})
	return nil
}

// outputFile returns the artefact with all that a command to verify printed.
func outputFile(name string) string { return "tests." + fileName(name) + ".log" }

func (s *suiteRun) tryVerify(ctx context.Context, command Command) (evidence, error) {
	return s.tryReport(ctx, reportRun{
		name:    command.Name,
		argv:    command.Argv,
		parser:  command.Parser,
		timeout: command.Timeout,
		words:   map[string]string{"{dir}": "."},
		whole:   true,
	})
}

// tryCommand runs a check with the family's own command.
func (s *suiteRun) tryCommand(ctx context.Context, check task.Check) (evidence, error) {
	if err := stage(s.root, s.suite.Dir, check.File); MachineFailed(err) {
		return evidence{}, err
	} else if err != nil {
		return evidence{cannotRun: "stage failed: " + err.Error()}, nil
	}
	defer func() { _ = tree.Remove(s.root, check.File) }()
	runner := s.suite.Runner
	words := map[string]string{
		"{file}": check.File, "{dir}": path.Dir(check.File), "{tests}": goPattern(check.Tests),
	}
	if runner.Script != "" {
		script, err := s.asset("script", []byte(runner.Script))
		if err != nil {
			return evidence{}, err
		}
		words["{runner}"] = script
	}
	return s.tryReport(ctx, reportRun{
		name:    check.Name,
		argv:    runner.Command,
		parser:  runner.Parser,
		report:  runner.Report,
		words:   words,
		timeout: s.Task.Settings.Timeouts.Test,
		// Some shells read a script while they run it, so the program under test must not be able
		// to write to it.
		hidden: []string{s.inCopy(check.File)},
	})
}

// reportRun is a command whose report is read.
type reportRun struct {
	name           string
	argv           []string
	parser, report string
	words          map[string]string
	timeout        time.Duration
	hidden         []string // files that can be read only, and that programs under test do not see
	whole          bool     // all that is printed is kept in one file, too
}

func (s *suiteRun) tryReport(ctx context.Context, r reportRun) (evidence, error) {
	nonce := secret()
	if r.report != "" {
		// An existing report is not from this run.
		if err := tree.Remove(s.root, r.report); err != nil {
			return evidence{cannotRun: "an old report is in the way: " + err.Error()}, nil
		}
		r.words["{report}"] = filepath.Join(s.copied.Dir, r.report)
	}
	r.words["{nonce}"] = nonce
	argv, shell, err := s.guardShell(substitute(r.argv, r.words), s.copied.Dir, s.place)
	if err != nil {
		return evidence{}, fmt.Errorf("shell of the check %s: %w", r.name, err)
	}
	kept := s.protect()
	var all capture
	done, err := s.run(ctx, program{
		argv:     argv,
		env:      gitEnvironment(),
		dir:      s.copied.Dir,
		place:    s.place,
		timeout:  r.timeout,
		readable: unique(visible(s.private, shell), kept.files, r.hidden),
		writable: kept.dirs,
		hidden:   r.hidden,
		watch:    &all,
		private:  r.report == "",
	})
	if err != nil {
		return evidence{}, err
	}
	shown := s.evidenceOf(r.name, done)
	if r.whole {
		s.keep(outputFile(r.name), append(done.stdout.Bytes(), done.stderr.Bytes()...))
	}
	data := all.data
	switch {
	case r.report != "":
		if data, err = readReport(s.root, r.report, maxReport); err != nil {
			shown.report.problem("%v", err)
			return shown, nil
		}
		s.keep("tests."+fileName(r.name)+".report", data)
	case all.over:
		shown.report.problem("the report is too large")
		return shown, nil
	}
	shown.report = parseReport(r.parser, data, nonce)
	shown.report.tidy(s.Redactor)
	if broken := kept.broken(); broken != "" {
		shown.report.problem("%s", broken)
	}
	shown.byStatus = r.parser == task.ParserExit
	// By its status alone a check of this parser fails.
	shown.died = shown.died || shown.silent() && r.parser != task.ParserExitNonce
	return shown, nil
}

// unique joins lists of paths, each of which is there once.
func unique(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

// substitute replaces the placeholders of a command in one pass, so that inserted text is never
// expanded again.
func substitute(argv []string, words map[string]string) []string {
	var pairs []string
	for word, value := range words {
		pairs = append(pairs, word, value)
	}
	replacer := strings.NewReplacer(pairs...)
	argv = slices.Clone(argv)
	for i := range argv {
		argv[i] = replacer.Replace(argv[i])
	}
	return argv
}

// goPattern returns the -run pattern of exactly these tests.
func goPattern(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return "^(" + strings.Join(quoted, "|") + ")$"
}

// capture keeps what is printed, up to the bound of reports.
type capture struct {
	data []byte
	over bool
}

// Write implements io.Writer; it never fails.
func (c *capture) Write(p []byte) (int, error) {
	room := maxReport - len(c.data)
	c.over = c.over || len(p) > room
	c.data = append(c.data, p[:min(room, len(p))]...)
	return len(p), nil
}
