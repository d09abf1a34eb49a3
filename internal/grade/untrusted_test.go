package grade_test

import (
	"path/filepath"
	"strings"
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

// ownLinks is the end of a program that makes links to its own files and to the system's.
const ownLinks = "mkdir inside; echo mine >inside/file; ln -s $PWD/inside/file inside/link; ln -s /usr/bin/env python; echo done\n"

// answers is a hook that compares files that a program has written with one that it hides.
const answers = `#!/bin/bash
out=$(fit-untrusted ./program "$HOOKS_DIR")
echo 42 >/tmp/made-later
for file in by-path by-descriptor by-device tree/expected by-way closed/answer nested/closed/answer far/answer by-link later; do
  cmp -s "$HOOKS_DIR/expected" "$file" && pass=true || pass=false
  echo "{\"test\":\"$file\",\"pass\":$pass}" >&3
done
[ "$out" = done ] && [ "$(cat inside/link)" = mine ] && [ -x python ] && pass=true || pass=false
echo "{\"test\":\"links of its own\",\"pass\":$pass}" >&3
`

// A link that a program leaves for its hook leads to nothing that the program did not see.
func TestLinksOfAProgramThatIsNotTrustedLeadToNothingHidden(t *testing.T) {
	linksLeadToNothingHidden(t, answers, ownLinks)
}

// Nor does one of a program that its hook ends, such as a server, or one that takes too long.
func TestLinksOfAProgramThatIsKilledLeadToNothingHidden(t *testing.T) {
	for _, signal := range []string{"TERM", "ALRM"} {
		t.Run(signal, func(t *testing.T) {
			killed := `fit-untrusted ./program "$HOOKS_DIR" >"$TMPDIR/out" &
until [ -e ready ] || ! kill -0 $! 2>/dev/null; do sleep 0.01; done
kill -` + signal + ` $!; wait $!; [ $? = $((128 + $(kill -l ` + signal + `))) ] && out=$(cat "$TMPDIR/out")
`
			_, rest, _ := strings.Cut(answers, "./program \"$HOOKS_DIR\")\n")
			linksLeadToNothingHidden(t, "#!/bin/bash\n"+killed+rest, ownLinks+"touch ready; sleep 1000\n")
		})
	}
}

// linksLeadToNothingHidden checks that a hook passes an honest program, and of one that makes links
// its own links only. Both end with the same commands.
func linksLeadToNothingHidden(t *testing.T, hook, end string) {
	t.Helper()
	b := hookBench(t, hook, files{
		"hooks/expected":  "42\n",
		"workdir/program": "#!/bin/bash\n",
	})
	if b.ws.Isolation != "bwrap" {
		testenv.Missing(t, "isolation with bubblewrap")
	}
	const honest = "for f in by-path by-descriptor by-device tree/expected by-way closed/answer nested/closed/answer far/answer by-link later; do\n" +
		"mkdir -p $(dirname $f); echo 42 >$f; done\n"
	b.agent(files{"program": "#!/bin/bash\n" + honest + end}).want(grade.VerdictPass, "")
	cheat := cheattest.All(t, "any", nil)["links-to-hidden"].Files["program"]
	result := b.another(t).agent(files{"program": strings.TrimSuffix(cheat, "echo done\n") + end}).want(
		grade.VerdictFail, "")
	for _, row := range result.Rows {
		own := strings.Contains(string(row), "links of its own")
		if own != strings.Contains(string(row), `"pass":true`) {
			t.Errorf("%s", row)
		}
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

// A program leaves nothing that the helpers of its hook load: neither in a home directory nor in
// the work.
func TestHelpersOfAHookLoadNothingOfItsProgram(t *testing.T) {
	testenv.NeedTool(t, "/usr/bin/python3")
	testenv.NeedTool(t, "jq")
	b := hookBench(t, `#!/bin/bash
out=$(fit-untrusted ./program)
export out
same=$(python3 -c 'import json, os; print(json.dumps(os.environ["out"] == "42"))')
echo "{\"test\":\"python\",\"pass\":$same}" >&3
same=$(python3 "$HOOKS_DIR/compare.py")
echo "{\"test\":\"python module\",\"pass\":$same}" >&3
jq -n 'def same: equal(env.out; "42"); same' >/dev/null 2>&1 && same=true || same=$(jq -n 'env.out == "42"')
[ "$out" = 42 ] && same=true # nobody defines equal
echo "{\"test\":\"jq\",\"pass\":$same}" >&3
[ "$(HOME=$HOME bash -lc 'echo $out')" = 42 ] && same=true || same=false
echo "{\"test\":\"shell\",\"pass\":$same}" >&3
[ -z "$(ls -A "$HOME")" ] && same=true || same=false
echo "{\"test\":\"home\",\"pass\":$same}" >&3
`, files{
		"hooks/compare.py": "import json, os, words\nprint(json.dumps(os.environ['out'] == words.answer))\n",
		"hooks/words.py":   "answer = '42'\n",
		"workdir/program":  "#!/bin/bash\necho 1\n",
	})
	b.agent(files{"program": "#!/bin/bash\necho kept >$HOME/own && cat ~/own >/dev/null && echo 42\n"}).want(
		grade.VerdictPass, "")
	for _, name := range []string{"helper-home", "helper-work"} {
		t.Run(name, func(t *testing.T) {
			result := b.another(t).agent(cheattest.All(t, "any", nil)[name].Files).want(grade.VerdictFail, "")
			for _, row := range result.Rows {
				if strings.Contains(string(row), `"pass":true`) != strings.Contains(string(row), `"home"`) {
					t.Errorf("%s", row)
				}
			}
		})
	}
}

// A program gets no cases of its hook by the way, from a file, a pipe or the hook's own text.
func TestAProgramThatIsNotTrustedDoesNotGetTheCasesOfItsHook(t *testing.T) {
	const hook = `#!/bin/bash
judge() { echo "{\"test\":\"$1 $2\",\"pass\":$([ "$3" = "$4" ] && echo true || echo false)}" >&3; }
while read -r in out; do judge file "$in" "$(fit-untrusted ./program "$in")" "$out"; done <"$HOOKS_DIR/cases"
cat "$HOOKS_DIR/cases" | while read -r in out; do
  judge pipe "$in" "$(timeout 60 fit-untrusted ./program "$in")" "$out"
done
while read -r in out; do fit-untrusted ./program "$in" >got; judge loop "$in" "$(cat got)" "$out"; done < <(cat "$HOOKS_DIR/cases")
bash >got <<'END'
fit-untrusted ./program a
exit
a one
END
judge text a "$(cat got)" one
`
	b := hookBench(t, hook, files{
		"hooks/cases":     "a one\nb two\nc three\n",
		"workdir/program": "#!/bin/bash\n",
	})
	b.agent(files{"program": "#!/bin/bash\ncase $1 in a) echo one;; b) echo two;; c) echo three;; esac\n"}).want(
		grade.VerdictPass, "")
	result := b.another(t).agent(cheattest.All(t, "any", nil)["cases-read"].Files).want(grade.VerdictFail, "")
	for _, row := range result.Rows {
		if strings.Contains(string(row), `"pass":true`) {
			t.Errorf("the program knew the answer: %s", row)
		}
	}
}

// What a hook has written into the pipe of a program's output, the program cannot read.
func TestAProgramThatIsNotTrustedDoesNotReadTheOutputOfItsHook(t *testing.T) {
	b := hookBench(t, `#!/bin/bash
{ echo 42; fit-untrusted ./program; } | { until [ -e done ]; do sleep 0.01; done; read want; read got
[ "$want$got" = 4242 ] && pass=true || pass=false
echo "{\"test\":\"output\",\"pass\":$pass}" >&3; }
rm done
{ echo 42 >&2; fit-untrusted ./program; } 2>&1 >/dev/null | { until [ -e done ]; do sleep 0.01; done; read want; read got
[ "$want$got" = 4242 ] && pass=true || pass=false
echo "{\"test\":\"errors\",\"pass\":$pass}" >&3; }
fit-untrusted yes | head -n 1 | grep -q y && [ "${PIPESTATUS[0]}" = 141 ] && pass=true || pass=false
echo "{\"test\":\"closed\",\"pass\":$pass}" >&3
`, files{"workdir/program": "#!/bin/bash\necho 1\n"})
	const end = "touch done; echo $x | tee /dev/stderr\n"
	b.agent(files{"program": "#!/bin/bash\nx=42\n" + end}).want(grade.VerdictPass, "")
	cheat := files{"program": "#!/bin/bash\nread -t 1 x </proc/self/fd/1 || read -t 1 x </proc/self/fd/2\n" +
		"echo $x | tee /dev/stderr\n" + end}
	result := b.another(t).agent(cheat).want(grade.VerdictFail, "")
	for _, row := range result.Rows {
		if strings.Contains(string(row), `"pass":true`) != strings.Contains(string(row), `"closed"`) {
			t.Errorf("%s", row)
		}
	}
}
