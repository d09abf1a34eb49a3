package benchmarkcli

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Controls run beside the arms and are not compared as arms; if one of them fails, no gate passes.
func TestControlsRunBesideTheArms(t *testing.T) {
	c := twoArms(t, 2, "--controls")
	c.want(0, "compare", "out")
	c.contains(c.stdout, "controls: the shadow of the baseline is silent (", "after")
	if strings.Contains(c.stdout, "corrected for") { // controls are no comparisons of the question
		t.Error(c.stdout)
	}
	if found, err := filepath.Glob(filepath.Join(c.dir, "out/runs/*/control-shadow")); err != nil || len(found) != 2 {
		t.Errorf("shadows: %v %v", found, err)
	}
	c.want(0, "report", "out", "--min-pass-rate", "0")
	c.contains(c.stdout, `"kind": "shadow"`, `"passed": true`, `"validity": "docs/validity.md"`)
	// They are interleaved with the arms, so they cannot be added to results.
	without := append(slices.Clone(c.again), "--output", "later")
	c.want(0, without...)
	c.want(2, append(without, "--controls")...)
	c.contains(c.stderr, "arm control-shadow: new, and controls run beside the other arms from the first run on")
	// An effect that this family declares and two tasks cannot show.
	c.write(map[string]string{"family/control-arm.yaml": "effect: worse\narms:\n  - name: known\n    agent: builtin\n" +
		"    model: claude-sonnet-4-5\n    prompt: Do nothing.\n"})
	c.want(0, append(c.again, "--controls", "--output", "known")...)
	c.want(1, "report", "known", "--min-pass-rate", "0")
	c.contains(c.stderr, "withheld because the known effect of control-known was not found")
	c.want(0, "compare", "known")
	c.contains(c.stdout, "the known effect of control-known was not found")
}

// What may change while an experiment continues is named where it does.
func TestAnExperimentThatContinuesInAnotherWaySaysSo(t *testing.T) {
	c := twoArms(t, 1, "--concurrency", "1")
	c.want(0, append(slices.Clone(c.again), "--concurrency", "1")...)
	if strings.Contains(c.stderr, "continues with") {
		t.Error(c.stderr)
	}
	c.want(0, append(slices.Clone(c.again), "--concurrency", "3", "--attempts", "5", "--record", "meta")...)
	c.contains(c.stderr, "was started with --concurrency 1 and continues with 3",
		"was started with --attempts 3 and continues with 5", "was started with --record bodies and continues with meta")
}
