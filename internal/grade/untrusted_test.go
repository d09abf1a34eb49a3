package grade_test

import (
	"path/filepath"
	"testing"

	"github.com/fit-eval/fit/internal/cheattest"
	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/testenv"
)

// A program that a hook runs by fit-untrusted sees the work and the system: nothing of the family,
// the hook, the tests, other tasks, or what the hook keeps for itself.
func TestAProgramThatIsNotTrustedSeesTheWorkAndTheSystemOnly(t *testing.T) {
	hook := `#!/bin/bash
# HIDDEN-WORD
export SECRET=HIDDEN-WORD
echo HIDDEN-WORD >"$TMPDIR/expected"; echo HIDDEN-WORD >/tmp/expected
cat "$TASK_DIR/tests/behaviour.tap.sh" >/dev/null || exit 9
ls "$FAMILY_DIR/tasks/two" >/dev/null 2>&1 && echo "the hook sees another task" >&2
out=$(fit-untrusted ./program 2>&1)
[ "$out" = 42 ] && [ -f sub/made-by-the-program ] && pass=true || { pass=false; echo "$out" >&2; }
echo "{\"test\":\"answer\",\"pass\":$pass}" >&3
`
	suite := `# HIDDEN-WORD
echo 1..1; if [ "$(fit-untrusted ./program)" = 42 ]; then echo ok 1 - answers; else echo not ok 1 - answers; fi
`
	dir := t.TempDir()
	files{
		"one/agent.task.md": "Do it.\n", "two/agent.task.md": "HIDDEN-WORD\n", "two/solution/program": "HIDDEN-WORD\n",
		"one/workdir/program": "#!/bin/bash\necho 1\n", "one/hooks/invariants.sh": hook,
		"one/tests/behaviour.tap.sh": suite,
		"one/task.yaml":              "tests:\n  language: other\n  files: [\"*.tap.sh\"]\n  command: [sh, \"{file}\"]\n  parser: tap\n",
		"one/solution/program":       "#!/bin/bash\n# HIDDEN-WORD\nmkdir sub; echo made >sub/made-by-the-program; echo 42\n",
		"two/workdir/program":        "HIDDEN-WORD\n",
		"two/hooks/invariants.sh":    "#!/bin/sh\n# HIDDEN-WORD\n",
	}.write(t, filepath.Join(dir, "tasks"))
	family, err := task.Load(t.Context(), dir, task.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := benchOf(t, family).agent(cheattest.All(t, "any", nil)["searcher"].Files)
	if b.ws.Isolation != "bwrap" {
		testenv.Missing(t, "isolation with bubblewrap")
	}
	result := b.want(grade.VerdictPass, "")
	if len(result.Rows) != 2 || result.Invariants.Stderr != "" {
		t.Errorf("the hook says what it sees of another task: %s", describe(result))
	}
}

// Hooks pass variables on by naming them.
func TestAHookNamesTheVariablesOfAProgramThatIsNotTrusted(t *testing.T) {
	hookBench(t, `#!/bin/bash
export OWN=1
out=$(fit-untrusted sh -c 'echo "$OWN|$TASK_ID|$SAMPLE|$PORT"')
given=$(fit-untrusted env OWN="$OWN" sh -c 'echo "$OWN"')
[ "$out" = "|||$PORT" ] && [ "$given" = 1 ] && pass=true || { pass=false; echo "$out $given" >&2; }
echo "{\"test\":\"variables\",\"pass\":$pass}" >&3
`).want(grade.VerdictPass, "")
}
