package grade_test

import (
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/task"
)

func TestHintsNameProgramsThatAHookStartsItself(t *testing.T) {
	for line, want := range map[string]string{
		`./even 4`: "./even",
		`out=$(cd "$AGENT_CWD" && node src/x.js)`:    "node",
		`if git diff --quiet; then pass=true; fi`:    "git",
		`"$AGENT_CWD/bin/tool" --version`:            `"$AGENT_CWD/bin/tool"`,
		`FOO=1 python3 -m unittest`:                  "python3",
		`. ./lib.sh`:                                 ". ./lib.sh",
		`source lib.sh`:                              "source lib.sh",
		`out=$(bash even.sh 4)`:                      "bash even.sh",
		`timeout 5 ./even 4`:                         "./even",
		`make -C "$AGENT_CWD" test`:                  "make",
		`fit-untrusted ./even 4`:                     "",
		`. "$(dirname "$0")/lib.sh"`:                 "",
		`. "${HOOKS_DIR}/lib.sh"`:                    "",
		`sh "$TASK_DIR/check.sh"`:                    "",
		`sh -c 'echo ready'`:                         "",
		`out=$(fit-untrusted node src/x.js)`:         "",
		`node "$HOOKS_DIR/probe.mjs"`:                "",
		`grep -q digit "$AGENT_CWD/go.mod"`:          "",
		`# run ./even by hand`:                       "",
		`echo "{\"test\":\"go\",\"pass\":true}" >&3`: "",
	} {
		t.Run(line, func(t *testing.T) {
			b := hookBench(t, "#!/bin/sh\n"+line+"\n")
			warnings, _ := grade.Hints(b.task)
			hints := strings.Join(warnings, "\n")
			if want == "" && hints != "" || want != "" &&
				!strings.Contains(hints, "invariants.sh:2 starts "+want+" itself") {
				t.Errorf("the hints are %q, want %q", hints, want)
			}
		})
	}
}

// A test in shell can be read by what it starts, as a hook can.
func TestHintsNameProgramsThatATestInShellStartsItself(t *testing.T) {
	const settings = "tests:\n  language: other\n  files: [\"*.tap.sh\"]\n  command: [/bin/sh, \"{file}\"]\n  parser: tap\n"
	for command, want := range map[string]int{"sh ./x.sh 1": 1, "fit-untrusted sh ./x.sh 1": 0} {
		b := newBench(t, files{
			"task.yaml": settings, "workdir/x.sh": "", "tests/a.tap.sh": "echo 1..1\ngot=$(" + command + ")\n",
		})
		if warnings, _ := grade.Hints(b.task); len(warnings) != want {
			t.Errorf("%s: %q", command, warnings)
		}
	}
}

func TestHintsSayWhatHiddenTestsInOneProcessCannotSee(t *testing.T) {
	python := newBench(t, files{"tests/test_a.py": "import unittest\n", "workdir/a.py": ""})
	if _, hints := grade.Hints(python.task); len(hints) != 1 || !strings.Contains(hints[0], "__eq__") {
		t.Errorf("the hints for Python are %q", hints)
	}
	node := newBench(t, nodeTask())
	if _, hints := grade.Hints(node.task); len(hints) != 1 || !strings.Contains(hints[0], "/proc/self/mem") {
		t.Errorf("the hints for node are %q", hints)
	}
	shared := grade.SharedProcess(python.task) + " " + grade.SharedProcess(node.task) +
		grade.SharedProcess(hookBench(t, "#!/bin/sh\n").task)
	if shared != "python node" {
		t.Errorf("the tests that share a process are of %s", shared)
	}
	golang := newBench(t, files{
		"tests/sum/a_test.go": "package sum\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n",
		"workdir/go.mod":      "module x\n",
	})
	if _, hints := grade.Hints(golang.task); len(hints) != 1 || !strings.Contains(hints[0], "unsafe") {
		t.Errorf("the hints for Go are %q", hints)
	}
}

func TestHintsSayWhatLogsAndRewardsAreWorth(t *testing.T) {
	for want, graded := range map[string]task.Task{
		"prints a whole log":   {Instance: &task.Instance{}},
		"files that the agent": {Verifier: &task.Verifier{}},
	} {
		t.Run(want, func(t *testing.T) {
			if grade.SharedProcess(&graded) == "" {
				t.Errorf("reports do not name the grader that %s", want)
			}
			if _, notes := grade.Hints(&graded); len(notes) != 1 || !strings.Contains(notes[0], want) {
				t.Errorf("%q does not say %q", notes, want)
			}
		})
	}
}
