package grade

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/patch"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/workspace"
)

// InstanceReport is the report on the tests of a SWE-bench task, with SWE-bench's fields.
type InstanceReport struct {
	PatchIsNone  bool `json:"patch_is_None"`
	PatchExists  bool `json:"patch_exists"`
	PatchApplied bool `json:"patch_successfully_applied"`
	Resolved     bool `json:"resolved"`
	// InfraFailure says that the log looks as if the machine failed and not the patch.
	InfraFailure bool                   `json:"infra_failure"`
	TestsStatus  map[string]TestsStatus `json:"tests_status,omitempty"`
	// Ambiguous says that the test command failed and the log has no test that did.
	Ambiguous bool `json:"ambiguous_failure,omitempty"`
	// Error says why the tests did not run to their end; empty if they did.
	Error string `json:"error,omitempty"`
}

// TestsStatus are the tests of one list that passed, and those that did not.
type TestsStatus struct {
	Success []string `json:"success"`
	Failure []string `json:"failure"`
}

// The lists of tests of a SWE-bench task, and the names of its rows.
const (
	failToPass = "FAIL_TO_PASS"
	passToPass = "PASS_TO_PASS"
)

// Markers are the lines that the script of a SWE-bench task prints around the tests.
const (
	startMarker = ">>>>> Start Test Output"
	endMarker   = ">>>>> End Test Output"
)

// judgeInstance runs the tests of a SWE-bench task on a copy and makes a gate of each of its two
// lists of tests.
func (g *grading) judgeInstance(ctx context.Context) (graded, error) {
	n := g.Task.Instance
	if n == nil {
		return graded{}, nil
	}
	g.instance = &InstanceReport{
		PatchIsNone: g.Patch != nil && *g.Patch == "",
		PatchExists: g.Patch == nil || strings.TrimSpace(*g.Patch) != "",
	}
	if len(n.Lacks) > 0 {
		broken := "it cannot be graded: the row has no " + strings.Join(n.Lacks, ", ")
		g.instance.Error = broken
		return graded{health: health{broken: broken, graderFault: true}}, nil
	}
	if !g.instance.PatchExists {
		return g.unresolved("the patch is empty"), nil
	}
	shown, err := g.tryInstance(ctx)
	if err != nil {
		return graded{}, err
	}
	g.instance.PatchApplied = shown.applied
	g.keep("test_output.txt", shown.excerpt())
	if shown.broken != "" {
		return g.brokenInstance(ctx, shown)
	}
	found := g.resolve(shown)
	if found.health, err = g.confirmInstance(ctx, shown, found.failing()); err != nil {
		return graded{}, err
	}
	if !found.health.ok() {
		g.instance.InfraFailure, g.instance.Error = true, found.health.broken
	}
	if content, err := json.MarshalIndent(map[string]any{g.Task.ID: g.instance}, "", "  "); err == nil {
		g.keep("report.json", content)
	}
	return found, nil
}

// unresolved returns the grade of an attempt whose tests were not run.
func (g *grading) unresolved(reason string) graded {
	return graded{rows: []Row{
		testRow(failToPass, true, 0, false, reason),
		testRow(passToPass, true, 0, false, reason),
	}}
}

// brokenInstance decides whose fault it is that the tests did not run to their end. The agent's
// patch is to blame if they do with the reference patch, or without any.
func (g *grading) brokenInstance(ctx context.Context, shown instanceRun) (graded, error) {
	reason := g.Redactor.String(shown.broken)
	g.instance.Error = reason
	found := g.unresolved(reason)
	if !shown.applied { // a patch that does not apply is the agent's fault
		found.reasons = []string{reason}
		return found, nil
	}
	reference := g.Task.Instance.Gold
	other := g.without(false)
	if other.Patch = nil; reference != "" {
		other.Patch = &reference
	}
	without, err := other.tryInstance(ctx)
	if err != nil {
		return found, err
	}
	if without.broken != "" {
		found.health = health{
			broken:      reason + ", and without the agent's work too: " + without.broken,
			graderFault: true,
		}
		g.instance.InfraFailure = true
		return found, nil
	}
	found.health = health{broken: reason}
	confirmed, err := g.confirmInstance(ctx, shown, found.failing())
	if !confirmed.ok() {
		found.health, g.instance.InfraFailure = confirmed, true
	}
	return found, err
}

// instanceRun is how one run of the tests went.
type instanceRun struct {
	applied bool
	// broken returns why the tests did not run to their end; empty if they did.
	broken string
	log    []byte // all that was printed
	tests  []byte // what the tests printed
	status int    // of the test command
}

// The bounds of the log that is kept for people.
const (
	logHead = 1 << 20
	logTail = 3 << 20
)

// excerpt returns the beginning and the end of what was printed.
func (r *instanceRun) excerpt() []byte {
	skipped := len(r.log) - logHead - logTail
	if skipped <= 0 {
		return r.log
	}
	note := fmt.Sprintf("\n… %d bytes left out …\n", skipped)
	return slices.Concat(r.log[:logHead], []byte(note), r.log[logHead+skipped:])
}

// tryInstance makes a copy with the work, or with the patch that is to be graded, puts the tests in
// place and runs them.
func (g *grading) tryInstance(ctx context.Context) (instanceRun, error) {
	copied, broken, err := g.instanceCopy(ctx)
	if err != nil || broken != "" {
		return instanceRun{broken: broken}, err
	}
	defer func() { _ = copied.Remove() }()
	shown := instanceRun{applied: true}
	if shown.broken, err = g.putTests(ctx, copied); err != nil || shown.broken != "" {
		return shown, err
	}
	return shown, g.evaluate(ctx, copied, &shown)
}

// instanceCopy returns a copy of what the agent left, or of the base with a patch.
func (g *grading) instanceCopy(ctx context.Context) (copied *workspace.Copy, broken string, err error) {
	if g.Patch != nil {
		return g.patchedCopy(ctx)
	}
	copied, err = g.copy(ctx)
	if _, unfit := errors.AsType[*copyError](err); unfit {
		return nil, err.Error(), nil
	}
	return copied, "", err
}

// applyCommands are the ways in which SWE-bench tries to apply a patch. Each is tried on its own
// copy, so that a half-applied patch does not count.
var applyCommands = [][]string{
	{"git", "apply", "--verbose"},
	{"git", "apply", "--verbose", "--3way"},
	{"git", "apply", "--verbose", "--reject"},
	{"patch", "--batch", "--forward", "--fuzz=5", "-p1"},
}

// patchedCopy returns a copy of the base with the patch applied. The patch is hostile, so it is
// applied where the tests run.
func (g *grading) patchedCopy(ctx context.Context) (copied *workspace.Copy, broken string, err error) {
	for i, argv := range applyCommands {
		copied, err = g.Source.Copy(ctx, workspace.CopyConfig{FromBase: true})
		if err != nil {
			return nil, "", fmt.Errorf("copy the base: %w", err)
		}
		said, err := g.applyPatch(ctx, copied, argv)
		if err == nil && said != "" && i == len(applyCommands)-1 {
			// A tree that already has the change is graded, too.
			if had, _ := g.applyPatch(ctx, copied, []string{"git", "apply", "--check", "--reverse"}); had == "" {
				said = ""
			}
		}
		if err == nil && said == "" {
			return copied, "", nil
		}
		if err = errors.Join(err, copied.Remove()); err != nil {
			return nil, "", err
		}
		broken = cmp.Or(broken, "the patch does not apply: "+said)
	}
	return nil, broken, nil
}

// applyPatch runs a command that applies the patch to a copy. It returns what the command said if
// it failed.
func (g *grading) applyPatch(ctx context.Context, copied *workspace.Copy, argv []string) (failed string, err error) {
	place, err := g.testbed(copied)
	if err != nil {
		return "", err
	}
	done, err := g.run(ctx, program{
		argv:    argv,
		dir:     copied.Dir,
		place:   place,
		env:     gitEnvironment(),
		stdin:   []byte(strings.TrimSuffix(*g.Patch, "\n") + "\n"),
		timeout: defaultTimeout,
	})
	if err != nil || done.status() == 0 {
		return "", err
	}
	return cmp.Or(done.stderr.last(maxMessage), fmt.Sprintf("%s exits with %d", argv[0], done.status())), nil
}

// putTests puts the files of the test patch as they must be: what the agent did to them is undone.
// Scripts that apply the test patch themselves find the files as they were in the base. The
// repository is that of the base, too: everything that was committed, moved or configured is gone.
func (g *grading) putTests(ctx context.Context, copied *workspace.Copy) (broken string, err error) {
	n := g.Task.Instance
	parsed := patch.Parse([]byte(n.TestPatch))
	var names []string
	for i := range parsed.Files {
		names = append(names, parsed.Files[i].Old, parsed.Files[i].New)
	}
	restorer, ok := g.Source.(interface {
		Restore(c *workspace.Copy, names []string) error
	})
	if !ok {
		return "", errors.New("grade: a task of SWE-bench needs a workspace")
	}
	if err := restorer.Restore(copied, names); err != nil {
		return "the files of the tests cannot be put back: " + err.Error(), nil
	}
	if len(names) == 0 || strings.Contains(n.EvalScript, strings.TrimSpace(n.TestPatch)) {
		return "", nil
	}
	place, err := g.testbed(copied)
	if err != nil {
		return "", err
	}
	done, err := g.run(ctx, program{
		argv:    []string{"git", "apply", "--whitespace=nowarn", "-"},
		dir:     copied.Dir,
		place:   place,
		env:     gitEnvironment(),
		stdin:   []byte(strings.TrimRight(n.TestPatch, "\n") + "\n"),
		timeout: defaultTimeout,
	})
	if err == nil && done.status() != 0 {
		broken = "the test patch does not apply: " + done.stderr.last(maxMessage)
	}
	return broken, err
}

// testbed returns the directory in which the tests of a copy run and its patch is applied.
func (g *grading) testbed(copied *workspace.Copy) (workspace.Place, error) {
	place := g.Source.Grader(copied)
	if place.Isolation.Container == nil && !place.Isolation.Isolates() {
		return place, errors.New("a task of SWE-bench needs a sandbox, which shows its repository at " + task.Testbed)
	}
	return place, nil
}

// markerLine is a line of a script that only prints a marker.
var markerLine = lazyregexp.New(`(?m)^[ \t]*(?::|echo|printf)[ \t].*>>>>> (Start|End) Test Output.*$`)

// evalShell reads the whole script before it runs any of it, so that no program that the script
// starts can change it, and has everything printed in one order.
const evalShell = `script=$(cat) && exec </dev/null 2>&1 && eval "$script"`

// evaluate runs the script of the task, and finds what the tests printed and how they ended.
func (g *grading) evaluate(ctx context.Context, copied *workspace.Copy, shown *instanceRun) error {
	n := g.Task.Instance
	nonce := secret()
	script := markerLine.Get().ReplaceAllStringFunc(n.EvalScript, func(line string) string {
		if strings.Contains(line, startMarker) {
			return line + "\necho " + nonce + " start"
		}
		return "fit_test_status=$?; echo; echo " + nonce + " end $fit_test_status\n" + line
	})
	place, err := g.testbed(copied)
	if err != nil {
		return err
	}
	argv, shell, err := g.guardShell([]string{"bash", "-c", evalShell}, copied.Dir, place)
	if err != nil {
		return fmt.Errorf("shell of the tests: %w", err)
	}
	var all bytes.Buffer // the output is limited
	done, err := g.run(ctx, program{
		argv:     argv,
		dir:      copied.Dir,
		place:    place,
		env:      instanceEnvironment(copied.Home),
		stdin:    []byte(script),
		timeout:  n.Timeout,
		readable: visible(shell),
		watch:    &all,
	})
	if err != nil {
		return err
	}
	shown.log, shown.status = all.Bytes(), done.status()
	aborted := done.abortReason()
	var ended bool
	shown.tests, ended = between(shown.log, nonce, &shown.status)
	switch {
	case aborted != "" && !ended:
		shown.broken = "the test script " + aborted
	case !ended:
		shown.broken = "the test script did not finish the tests: " +
			strings.TrimSpace(display.LastBytes(strings.TrimSpace(display.Text(all.String())), maxMessage))
	}
	shown.log = bytes.ReplaceAll(shown.log, []byte(nonce), []byte("fit"))
	return nil
}

// between returns what was printed between the markers of a run, whose status it takes over.
// Markers with the nonce of the run win: the tested code could print the others. If the script gave
// no chance to print those, the last end marker counts.
func between(log []byte, nonce string, status *int) (tests []byte, ended bool) {
	_, rest, started := bytes.Cut(log, []byte(nonce+" start\n"))
	if !started {
		if _, rest, started = bytes.Cut(log, []byte(startMarker)); !started {
			return nil, false
		}
	}
	tests, tail, found := bytes.Cut(rest, []byte("\n"+nonce+" end "))
	if found {
		line, _, _ := strings.Cut(string(tail), "\n")
		if code, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			*status = code
		}
		return tests, true
	}
	if end := bytes.LastIndex(rest, []byte(endMarker)); end >= 0 {
		return rest[:end], true
	}
	return rest, false
}

// instanceEnvironment lets scripts use git on files of another user, and configure it for
// themselves.
func instanceEnvironment(home string) map[string]string {
	return map[string]string{
		"GIT_CONFIG_GLOBAL": filepath.Join(home, ".gitconfig"),
		"GIT_CONFIG_COUNT":  "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
		"GIT_TERMINAL_PROMPT": "0",
	}
}
