package grade_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cheattest"
	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/redact"
)

// reads the agent's answer and reports two rows about it.
const answerHook = `#!/bin/bash
answer=$(cat "$AGENT_CWD/answer" 2>/dev/null)
[ "$answer" = 42 ] && pass=true || pass=false
echo "{\"test\":\"answer\",\"pass\":$pass}" >&3
echo '{"test":"there","pass":true,"weight":1}' >&"$RESULTS_FD"
`

func hookBench(t *testing.T, script string, more ...files) *bench {
	t.Helper()
	content := files{"hooks/invariants.sh": script, "workdir/README": "hello\n"}
	for _, m := range more {
		for name, text := range m {
			content[name] = text
		}
	}
	return newBench(t, content)
}

func TestHookGivesHalfCreditAndFullMarks(t *testing.T) {
	half := hookBench(t, answerHook).want(grade.VerdictFail, "")
	if *half.Grade.Score != 0.5 || *half.Score != 0.5 || half.HiddenTests != nil || half.Invariants.Stderr != "" {
		t.Errorf("half credit is %s", describe(half))
	}
	full := hookBench(t, answerHook).agent(files{"answer": "42"}).want(grade.VerdictPass, "")
	if *full.Score != 1 || !full.Grade.Healthy || !strings.Contains(string(full.Rows[0]), `"source":"invariants"`) {
		t.Errorf("full marks are %s", describe(full))
	}
}

func TestATaskThatIsDeclaredBinaryHasNoScore(t *testing.T) {
	result := hookBench(t, answerHook, files{"task.yaml": "scored: false\n"}).want(grade.VerdictFail, "")
	if result.Score != nil || result.Grade.Score != nil {
		t.Errorf("there is a score: %s", describe(result))
	}
}

func TestATaskThatIsDeclaredScoredAlwaysHasAScore(t *testing.T) {
	gate := "#!/bin/bash\n[ -e done ] && pass=true || pass=false\necho \"{\\\"test\\\":\\\"a\\\",\\\"gate\\\":true,\\\"pass\\\":$pass}\" >&3\n"
	for name, test := range map[string]struct {
		agent   files
		verdict string
		score   float64
	}{
		"gates pass": {files{"done": ""}, grade.VerdictPass, 1}, "gates fail": {nil, grade.VerdictFail, 0},
	} {
		t.Run(name, func(t *testing.T) {
			result := hookBench(t, gate, files{"task.yaml": "scored: true\n"}).agent(test.agent).want(test.verdict, "")
			if result.Score == nil || *result.Score != test.score {
				t.Errorf("the score is not %v: %s", test.score, describe(result))
			}
		})
	}
	if result := hookBench(t, gate).want(grade.VerdictFail, ""); result.Score != nil {
		t.Errorf("a task of gates that declares nothing has a score: %s", describe(result))
	}
}

func TestHookGetsTheVariablesOfTheSpecificationAndNoOthers(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "not-for-hooks")
	b := hookBench(t, `#!/bin/bash
[ "$PWD" = "$AGENT_CWD" ] && [ -f README ] || exit 9
[ "$RESULTS_FD" = 3 ] && [ "$TASK_ID" = one ] && [ -d "$TASK_DIR/hooks" ] && [ "$HOOKS_DIR" = "$TASK_DIR/hooks" ] || exit 8
[ -d "$FAMILY_DIR/tasks" ] && [ "$PORT" -gt 0 ] && [ -z "$WORKDIR" ] || exit 7
[ -z "$ANTHROPIC_API_KEY" ] || exit 6
read -r line && exit 5
echo '{"gate":true,"pass":true}' >&3
`)
	result := b.want(grade.VerdictPass, "")
	if result.Grade.Score != nil {
		t.Errorf("gates only made a score: %s", describe(result))
	}
}

func TestHookThatEndsWithAStatusIsNotHealthy(t *testing.T) {
	// On the base the hook is all right; the agent's file makes it give up.
	script := `#!/bin/bash
echo '{"test":"a","pass":true}' >&3
[ -e bomb ] && { echo "no such tool: frobnicate" >&2; exit 3; }
exit 0
`
	hookBench(t, script).want(grade.VerdictPass, "")
	result := hookBench(t, script).agent(files{"bomb": ""}).want(grade.VerdictFail, "no such tool: frobnicate")
	if result.Invariants.ExitCode != 3 || *result.Grade.Score != 1 || *result.Score != 0 || result.Grade.Healthy {
		t.Errorf("an unhealthy hook gave %s", describe(result))
	}
	broken := hookBench(t, "#!/bin/bash\necho '{\"test\":\"a\",\"pass\":true}' >&3\nexit 1\n").want(grade.VerdictError,
		"on the base")
	if broken.Grade.Healthy {
		t.Error("a hook that always fails is called healthy")
	}
}

func TestHookThatIsKilledHangsOrFloodsFailsTheAgentWhoMadeItSo(t *testing.T) {
	for name, test := range map[string]struct {
		script, reason string
		status         int
	}{
		"killed": {`#!/bin/bash
echo '{"test":"a","pass":true}' >&3
[ -e bomb ] && kill -9 $$
exit 0`, "was killed by", 137},
		"floods its rows": {`#!/bin/bash
echo '{"test":"a","pass":true}' >&3
[ -e bomb ] && yes '{"test":"a","pass":true}' | head -c 20000000 >&3
exit 0`, "reported more than it may", 0},
		"says nothing": {`#!/bin/bash
[ -e bomb ] && exit 0
echo '{"test":"a","pass":true}' >&3`, "reported no row", 0},
	} {
		t.Run(name, func(t *testing.T) {
			result := hookBench(t, test.script).agent(files{"bomb": ""}).want(grade.VerdictFail, test.reason)
			if result.Invariants.ExitCode != test.status || result.Grade.Healthy {
				t.Errorf("the hook ended with %d, healthy %v; want %d and false", result.Invariants.ExitCode,
					result.Grade.Healthy, test.status)
			}
		})
	}
}

func TestAHookThatHangsOnTheWorkFailsIt(t *testing.T) {
	script := `#!/bin/bash
echo '{"test":"a","pass":true}' >&3
[ -e bomb ] && sleep 1000
exit 0`
	result := wantTimeout(t, "invariants", func(t *testing.T, yaml files) *bench {
		return hookBench(t, script, yaml)
	}, files{"bomb": ""})
	if result.Invariants.ExitCode != 124 || result.Grade.Healthy {
		t.Errorf("the hook ended with %d, healthy %v; want 124 and false", result.Invariants.ExitCode,
			result.Grade.Healthy)
	}
}

func TestNoChecksAreAnErrorAndNotAPass(t *testing.T) {
	hookBench(t, "#!/bin/bash\nexit 0\n").want(grade.VerdictError, "no check")
	hookBench(t, "#!/bin/bash\necho '{\"weight\":0,\"note\":1}' >&3\n").want(grade.VerdictError, "no check")
}

func TestDeclaredChecks(t *testing.T) {
	yaml := files{"task.yaml": "checks: [a, b]\n"}
	script := `#!/bin/bash
echo '{"test":"a","pass":true}' >&3
[ -e bomb ] || echo '{"test":"b","pass":true}' >&3
`
	hookBench(t, script, yaml).want(grade.VerdictPass, "")
	hookBench(t, script, yaml).agent(files{"bomb": ""}).want(grade.VerdictFail, "did not report b")
	hookBench(t, "#!/bin/bash\necho '{\"test\":\"a\",\"pass\":true}' >&3\n", yaml).want(grade.VerdictError,
		"on the base: the invariants hook did not report b")
}

func TestRowsForgedOnAnInheritedDescriptorDoNotHelp(t *testing.T) {
	// The hook runs the agent's program without closing the descriptor first.
	script := `#!/bin/bash
out=$(./program)
[ "$out" = 42 ] && pass=true || pass=false
echo "{\"test\":\"answer\",\"pass\":$pass}" >&3
`
	for name, yaml := range map[string]files{"declared": {"task.yaml": "checks: [answer]\n"}, "not declared": nil} {
		t.Run(name, func(t *testing.T) {
			base := files{"workdir/program": "#!/bin/bash\necho 1\n"}
			for forger, reason := range map[string]string{
				"rows-forged": "reported as passed and as failed", "rows-without-weight": "answer",
			} {
				result := hookBench(t, script, base, yaml).agent(cheattest.All(t, "any", nil)[forger].Files).want(
					grade.VerdictFail, reason)
				if *result.Score != 0 {
					t.Errorf("%s made the score %v", forger, *result.Score)
				}
			}
		})
	}
	hookBench(t, script, files{"workdir/program": "#!/bin/bash\necho 1\n"}).agent(
		files{"program": "#!/bin/bash\necho 42\n"}).want(grade.VerdictPass, "")
}

func TestAProgramThatAHookDoesNotTrustReachesNothingOfIt(t *testing.T) {
	testenv.NeedTool(t, "/usr/bin/python3")
	testenv.NeedTool(t, "unshare")
	script := `#!/bin/bash
out=$(@./program 2>&1)
[ "$out" = 42 ] && pass=true || { pass=false; echo "$out" >&2; }
echo "{\"test\":\"answer\",\"pass\":$pass}" >&3
`
	base := files{"workdir/program": "#!/bin/bash\necho 1\n"}
	forger := cheattest.All(t, "any", nil)["hook-searched"].Files
	trusting := hookBench(t, strings.Replace(script, "@", "", 1), base).agent(forger).grade()
	if len(trusting.Rows) < 2 {
		t.Errorf("the forger is not able to forge: %s", describe(trusting))
	}
	result := hookBench(t, strings.Replace(script, "@", "fit-untrusted ", 1),
		base).agent(forger).want(grade.VerdictPass, "")
	if len(result.Rows) != 1 {
		t.Errorf("there are other rows than the hook's: %s", describe(result))
	}
	killer := "#!/bin/bash\nkill -9 $PPID; kill -9 -1\n"
	hookBench(t, strings.Replace(script, "@", "fit-untrusted ", 1),
		base).agent(files{"program": killer}).want(grade.VerdictFail, "")
}

func TestRowsCannotBeTakenAwayByWhoInheritsTheDescriptor(t *testing.T) {
	script := `#!/bin/bash
echo '{"test":"before","pass":false}' >&3
./program
echo '{"test":"after","pass":true}' >&3
`
	thief := `#!/bin/bash
for fd in 1 2 3 4 5 6 7 8 9; do
  truncate -s 0 /proc/$PPID/fd/$fd; truncate -s 0 /proc/self/fd/$fd
  timeout 0.1 cat /proc/self/fd/$fd >/dev/null
done 2>/dev/null
`
	result := hookBench(t, script, files{"workdir/program": "#!/bin/bash\n"}).agent(files{"program": thief}).want(
		grade.VerdictFail, "before")
	if len(result.Invariants.Details) != 2 {
		t.Errorf("rows were lost: %s", describe(result))
	}
}

func TestHookWorksOnACopy(t *testing.T) {
	b := hookBench(t, "#!/bin/bash\necho graded > README; rm -f answer; mkdir made\necho '{\"pass\":true}' >&3\n").agent(files{"answer": "42"})
	b.want(grade.VerdictPass, "")
	if text, err := os.ReadFile(filepath.Join(b.ws.Dir, "README")); err != nil || string(text) != "hello\n" {
		t.Errorf("the hook changed the agent's README to %q (%v)", text, err)
	}
	if _, err := os.Stat(filepath.Join(b.ws.Dir, "made")); err == nil {
		t.Error("the hook made a directory in the agent's working directory")
	}
}

func TestProcessesThatAHookLeavesAreKilled(t *testing.T) {
	result := hookBench(t, `#!/bin/bash
echo '{"pass":true}' >&3
setsid sleep 1000 &
disown
`).want(grade.VerdictPass, "")
	if result.DurationMs > 20_000 {
		t.Errorf("grading waited %d ms for a daemon", result.DurationMs)
	}
}

func TestLinkToHiddenMaterialIsNotGraded(t *testing.T) {
	b := hookBench(t, answerHook, files{"solution/answer": "42"})
	b.agent(files{"answer": "-> " + filepath.Join(b.task.Dir, "solution", "answer")}).want(grade.VerdictFail, "")
}

func TestProtectedFilesAreRestored(t *testing.T) {
	content := files{"task.yaml": "protected: [\"README\", \"*.lock\"]\n"}
	b := hookBench(t, "#!/bin/bash\n[ \"$(cat README)\" = hello ] && [ ! -e planted.lock ] && p=true || p=false\necho \"{\\\"pass\\\":$p}\" >&3\n", content)
	b.agent(files{"README": "changed", "planted.lock": "x"}).want(grade.VerdictPass, "")
}

func TestSecretsAndEscapesAreTakenOutOfWhatIsKept(t *testing.T) {
	b := hookBench(t, `#!/bin/bash
printf 'key %s \033[2J\n' "$(cat key)" >&2
echo "{\"test\":\"a\",\"pass\":true,\"message\":\"$(cat key)\"}" >&3
`).agent(files{"key": "s3cr3t-value-of-the-task"})
	b.config.Redactor = redact.New(redact.Config{Extra: map[string]string{"TASK_KEY": "s3cr3t-value-of-the-task"}})
	result := b.want(grade.VerdictPass, "[REDACTED:env:TASK_KEY]")
	if strings.Contains(describe(result), "s3cr3t") || strings.Contains(result.Invariants.Stderr, "\x1b") {
		t.Errorf("the grade holds what it should not: %s", describe(result))
	}
	for _, name := range result.Artifacts {
		content, err := os.ReadFile(filepath.Join(b.artifacts, name))
		if err != nil || strings.Contains(string(content), "s3cr3t") {
			t.Errorf("the artefact %s holds the secret (%v)", name, err)
		}
	}
	if len(result.Artifacts) == 0 {
		t.Error("no evidence was kept")
	}
}

func TestCancelledGradingIsNoGrade(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := grade.Run(ctx, hookBench(t, answerHook).config); err == nil {
		t.Error("a cancelled grading gave a grade")
	}
}

func TestFlakyChecksAreFound(t *testing.T) {
	count := filepath.Join(t.TempDir(), "runs")
	b := hookBench(t, `#!/bin/bash
n=$(cat `+count+` 2>/dev/null || echo 0); echo $((n + 1)) > `+count+`
[ $((n % 2)) = 0 ] && p=true || p=false
echo "{\"test\":\"coin\",\"pass\":$p}" >&3
echo '{"test":"steady","pass":true}' >&3
`, files{"task.yaml": "isolation: none\n"})
	flaky, err := grade.Repeat(t.Context(), b.config, 4)
	if err != nil {
		t.Fatal(err)
	}
	if len(flaky) != 1 || flaky[0] != (grade.FlakyCheck{Source: "invariants", Name: "coin", Passes: 2, Runs: 4}) {
		t.Errorf("the flaky checks are %+v", flaky)
	}
}
