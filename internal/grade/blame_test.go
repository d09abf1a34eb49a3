package grade_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/cheattest"
	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/internal/workspace"
)

// counting is the beginning of a hook that counts its runs in a file outside of the sandbox.
func counting(t *testing.T) (script, file string) {
	file = filepath.Join(t.TempDir(), "runs")
	return "#!/bin/bash\nn=$(cat " + file + " 2>/dev/null || echo 0); n=$((n + 1)); echo $n >" + file + "\n", file
}

var unisolated = files{"task.yaml": "isolation: none\n"}

func TestAHookThatDiesAtRandomBlamesNobody(t *testing.T) {
	for name, dies := range map[string]string{
		"by a signal, with the agent's work only": "[ -e bomb ] && [ $n = 1 ] && kill -9 $$",
		"with a status, with the work only":       "[ -e bomb ] && [ $n -lt 8 ] && exit 7",
		"on the base the second time":             "[ -e bomb ] && exit 7; [ $n -gt 3 ] && exit 7",
		"on the base the last time":               "[ -e bomb ] && exit 7; [ $n -gt 9 ] && exit 7",
	} {
		t.Run(name, func(t *testing.T) {
			count, _ := counting(t)
			script := count + dies + "\necho '{\"test\":\"a\",\"pass\":true}' >&3\n"
			result := hookBench(t, script, unisolated).agent(files{"bomb": ""}).want(grade.VerdictError, "flaky")
			wantUnverified(t, result, name)
		})
	}
}

// wantUnverified checks that an error which the work alone brings about is one that its agent may
// have chosen.
func wantUnverified(t *testing.T, result grade.Result, name string) {
	t.Helper()
	if want := strings.Contains(name, "work only"); result.Unverified != want {
		t.Errorf("unverified is %t, want %t", result.Unverified, want)
	}
}

func TestAHookIsRunAgainBeforeTheAgentIsBlamed(t *testing.T) {
	for name, test := range map[string]struct {
		dies string
		runs string
	}{
		"an abort is confirmed":        {"[ -e bomb ] && exit 7", "10\n"},
		"silence is":                   {"[ -e bomb ] && exit 0", "10\n"},
		"running out of time is, once": {"[ -e bomb ] && sleep 100", "3\n"},
	} {
		t.Run(name, func(t *testing.T) {
			count, file := counting(t)
			script := count + test.dies + "\necho '{\"test\":\"a\",\"pass\":true}' >&3\n"
			short := files{"task.yaml": unisolated["task.yaml"] + "timeouts: {invariants: 2s}\n"}
			hookBench(t, script, short).agent(files{"bomb": ""}).want(grade.VerdictFail, "the invariants hook")
			runs, err := os.ReadFile(file)
			if err != nil || string(runs) != test.runs {
				t.Errorf("the hook ran %q times (%v), want %q", runs, err, test.runs)
			}
		})
	}
}

// TestAProgramUnderTestThatIsEndedFromOutsideIsRunAgain: a check that failed because something
// killed the program, and not because of what it did, fails nobody; one that fails each time fails
// the agent.
func TestAProgramUnderTestThatIsEndedFromOutsideIsRunAgain(t *testing.T) {
	for name, test := range map[string]struct {
		killed  string
		verdict string
		why     string
		runs    string
	}{
		"once":       {"[ $n = 1 ]", grade.VerdictError, "was ended from outside, and it is flaky", "2\n"},
		"twice":      {"[ $n -lt 3 ]", grade.VerdictError, "was ended from outside, and it is flaky", "3\n"},
		"each time":  {"true", grade.VerdictFail, "", "5\n"},
		"not at all": {"false", grade.VerdictPass, "", "1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			count, file := counting(t)
			script := count + `got=$(fit-untrusted sh -c 'sleep 0.5; echo 42' & p=$!
` + test.killed + ` && { sleep 0.1; kill -9 $p; }
wait $p)
[ "$got" = 42 ] && pass=true || pass=false
echo "{\"test\":\"a\",\"pass\":$pass}" >&3
`
			hookBench(t, script, unisolated).agent(nil).want(test.verdict, test.why)
			if runs, err := os.ReadFile(file); err != nil || string(runs) != test.runs {
				t.Errorf("the hook ran %q times (%v), want %q", runs, err, test.runs)
			}
		})
	}
}

// TestAProgramUnderTestThatIsKilledIsRunAgain: what kills a program and not the one around it looks
// to a hook like a program that printed nothing.
func TestAProgramUnderTestThatIsKilledIsRunAgain(t *testing.T) {
	for name, test := range map[string]struct {
		killed  string
		verdict string
	}{
		"twice":     {"[ $n -lt 3 ]", grade.VerdictError},
		"each time": {"true", grade.VerdictFail},
	} {
		t.Run(name, func(t *testing.T) {
			count, _ := counting(t)
			script := count + "kill=:; " + test.killed + ` && kill='kill -9 $$'
got=$(fit-untrusted sh -c "$kill; echo 42")
[ "$got" = 42 ] && pass=true || pass=false
echo "{\"test\":\"a\",\"pass\":$pass}" >&3
`
			hookBench(t, script, unisolated).agent(nil).want(test.verdict, "")
		})
	}
}

// TestAHookWhoseShellCannotForkFailsNobody: its machine has no more processes or memory.
func TestAHookWhoseShellCannotForkFailsNobody(t *testing.T) {
	for name, test := range map[string]struct {
		says    string
		verdict string
		cause   string
	}{
		"bash, with no row":      {"echo 'hook: fork: Resource temporarily unavailable' >&2; exit 254", "error", "no_process"},
		"bash, with a false row": {"echo 'hook: fork: retry: Cannot allocate memory' >&2; got=''", "error", "no_process"},
		"dash":                   {"echo 'hook: 3: Cannot fork' >&2; exit 2", "error", "no_process"},
		"the work, each time":    {"echo 'hook: 3: Cannot fork' >&2; exit 2", "fail", ""},
		"a killed program":       {"bash -c 'kill -9 $$; :'; got=''", "error", "killed"},
	} {
		t.Run(name, func(t *testing.T) {
			count, _ := counting(t)
			when := "[ $n -lt 3 ]"
			if test.verdict == "fail" {
				when = "[ -e bomb ]"
			}
			script := count + "got=42\n" + when + " && { " + test.says + "; }\n" +
				"[ \"$got\" = 42 ] && pass=true || pass=false\n" +
				"echo \"{\\\"test\\\":\\\"a\\\",\\\"pass\\\":$pass}\" >&3\n"
			result := hookBench(t, script, unisolated).agent(files{"bomb": ""}).want(test.verdict, "")
			if result.Cause != test.cause {
				t.Errorf("the cause is %q, want %q: %s", result.Cause, test.cause, describe(result))
			}
		})
	}
}

// TestAMachineThatCannotStartAProgramUnderTestFailsNobody: a hook sees only that the program
// printed nothing, which looks like wrong work.
func TestAMachineThatCannotStartAProgramUnderTestFailsNobody(t *testing.T) {
	script := "#!/bin/bash\ngot=$(ulimit -n 5; fit-untrusted echo 42); [ \"$got\" = 42 ] && pass=true || pass=false\n" +
		"echo \"{\\\"test\\\":\\\"a\\\",\\\"pass\\\":$pass}\" >&3\n"
	hookBench(t, script, unisolated).agent(nil).want(grade.VerdictError, "could not start a program under fit-untrusted")
}

// dyingTest is a task whose hidden test may die before it has said anything.
func dyingTest(t *testing.T, dies string) (content files, file string) {
	count, file := counting(t)
	content = commandTask("  command: [bash, \"{file}\"]\n  parser: tap\nisolation: none\n",
		count+dies+"\necho 1..1; [ \"$(cat answer)\" = 42 ] && echo 'ok 1 - answer' || echo 'not ok 1 - answer'")
	return content, file
}

func TestAHiddenTestThatDiesAtRandomBlamesNobody(t *testing.T) {
	for name, dies := range map[string]string{
		"by a signal, with the agent's work only": "[ -e bomb ] && [ $n -lt 4 ] && kill -9 $$",
		"with a status, with the work only":       "[ -e bomb ] && [ $n -lt 4 ] && exit 7",
		"on the base the second time":             "[ -e bomb ] && exit 7; [ $n -gt 3 ] && exit 7",
		"in a child, on the base too":             "[ $n != 1 ] && [ $n != 3 ] && echo Killed >&2 && echo 1..1 && echo 'not ok 1 - answer' && exit",
		"in a child, with the work only": "[ -e bomb ] && [ $n -lt 4 ] && bash -c 'kill -9 $$; :' || " +
			"{ [ $n -lt 4 ] && [ -e bomb ] && echo 1..1 && echo 'not ok 1 - answer' && exit; }",
	} {
		t.Run(name, func(t *testing.T) {
			content, _ := dyingTest(t, dies)
			result := newBench(t, content).agent(files{"answer": "42", "bomb": ""}).want(grade.VerdictError, "flaky")
			wantUnverified(t, result, name)
		})
	}
}

func TestAHiddenTestIsRunAgainBeforeTheAgentIsBlamed(t *testing.T) {
	for name, test := range map[string]struct {
		dies string
		runs string
	}{
		// The first run is the one that says what the test reports on the reference solution.
		"an abort is confirmed": {"[ -e bomb ] && kill -9 $$", "11\n"},
		"a failed report beside a killed program is": {
			"[ -e bomb ] && echo Killed >&2 && echo 1..1 && echo 'not ok 1 - answer' && exit 1", "11\n",
		},
		"a failed report is not": {"[ -e bomb ] && echo 1..1 && echo 'not ok 1 - answer' && exit 1", "2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			content, file := dyingTest(t, test.dies)
			newBench(t, content).agent(files{"answer": "42", "bomb": ""}).want(grade.VerdictFail, "")
			runs, err := os.ReadFile(file)
			if err != nil || string(runs) != test.runs {
				t.Errorf("the test ran %q times (%v), want %q", runs, err, test.runs)
			}
		})
	}
}

// TestACheckThatEndsInAnotherWayBlamesNobody: two accidents in a row are not alike, and what is not
// alike was not done by the work.
func TestACheckThatEndsInAnotherWayBlamesNobody(t *testing.T) {
	for name, dies := range map[string]string{
		"a status and then a kill": "[ $n = 2 ] && exit 1; [ $n = 3 ] && kill -9 $$",
		"a kill and then a status": "[ $n = 2 ] && kill -9 $$; [ $n -gt 3 ] && exit 1",
		"time and then a kill":     "[ $n = 2 ] && sleep 100; [ $n -gt 3 ] && kill -9 $$",
		"silence, twice":           "[ $n = 2 ] || [ $n = 3 ] && exit 1",
	} {
		for _, solved := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, solved %t", name, solved), func(t *testing.T) {
				content, _ := dyingTest(t, dies)
				content["task.yaml"] += "timeouts: {test: 2s}\n"
				if !solved {
					delete(content, "solution/answer")
				}
				result := newBench(t, content).agent(files{"answer": "42"}).want(grade.VerdictError, "")
				if solved && strings.HasPrefix(name, "time") && !result.Unverified {
					t.Error("the agent could have arranged it, and nobody says so")
				}
			})
		}
	}
}

// TestACommandWhoseProgramWasKilledIsConfirmed: the status of a command does not say that a program
// which it started was killed; what it prints may.
func TestACommandWhoseProgramWasKilledIsConfirmed(t *testing.T) {
	for name, test := range map[string]struct {
		dies    string
		verdict string
		runs    string
	}{
		"twice":           {"[ $n -lt 3 ] && { echo 'signal: killed'; exit 1; }", grade.VerdictError, "3\n"},
		"each time":       {"echo 'signal: killed'; exit 1", grade.VerdictFail, "5\n"},
		"an honest fault": {"echo 'want 42, got 41'; exit 1", grade.VerdictFail, "2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			count, file := counting(t)
			b := hookBench(t, "#!/bin/bash\necho '{\"test\":\"a\",\"pass\":true}' >&3\n", unisolated).agent(nil)
			b.config.Verify = []grade.Command{{
				Name:   "verify",
				Argv:   []string{"bash", "-c", strings.TrimPrefix(count, "#!/bin/bash\n") + test.dies + "\nexit 0"},
				Parser: "exit",
				Gate:   true,
			}}
			b.want(test.verdict, "")
			if runs, err := os.ReadFile(file); err != nil || string(runs) != test.runs {
				t.Errorf("the command ran %q times (%v), want %q", runs, err, test.runs)
			}
		})
	}
}

// TestAProgramOfAHiddenTestThatWasKilledIsRunAgain: the report of such a test is complete, and says
// how its program ended.
func TestAProgramOfAHiddenTestThatWasKilledIsRunAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runs")
	const program = `[ -e bomb ] && echo >>"$RUNS" && [ $(wc -l <"$RUNS") -lt 3 ] && kill -9 $$; true`
	for kind, content := range map[string]files{
		"node": nodeCheck(unisolated, files{"tests/test/add.test.js": "require('node:test')('adds', () => " +
			"require('node:child_process').execFileSync('bash', ['-c', `" + strings.ReplaceAll(program, "$RUNS", file) + "`]));\n"}),
		"python": pythonTask(unisolated, files{"tests/checks/test_add.py": "import subprocess, unittest\n" +
			"class Adding(unittest.TestCase):\n    def test_two(self):\n" +
			"        subprocess.run(['bash', '-c', '" + strings.ReplaceAll(program, "$RUNS", file) + "'], check=True)\n"}),
	} {
		t.Run(kind, func(t *testing.T) {
			_ = os.Remove(file)
			newBench(t, content).agent(files{"bomb": ""}).want(grade.VerdictError, "it is flaky")
		})
	}
}

// TestASandboxThatFailsToStartOnceIsTriedAgain: the work is graded as if nothing had been; if it
// never starts, that is the machine's error and not the grader's.
func TestASandboxThatFailsToStartOnceIsTriedAgain(t *testing.T) {
	for kind, b := range map[string]*bench{
		"hook":  hookBench(t, answerHook).agent(files{"answer": "42"}),
		"tests": nodeBench(t, nodeCheck()).agent(files{"src/add.js": addSource}),
	} {
		spawner := &breakable{ProcessSpawner: sandbox.NewSpawner()}
		b.config.Spawner = spawner
		failures := 1
		broken := func(sandbox.SpawnSpec) (sandbox.SpawnResult, error) {
			if failures--; failures == 0 {
				spawner.broken = nil
			}
			return sandbox.SpawnResult{}, fmt.Errorf("%w: bwrap: no room", sandbox.ErrBroken)
		}
		spawner.broken = broken
		b.want(grade.VerdictPass, "")
		spawner.broken, failures = broken, -1
		if result, err := grade.Run(t.Context(), b.config); !errors.Is(err, sandbox.ErrBroken) {
			t.Errorf("%s: a sandbox that never starts gives %q, %v", kind, result.Grade.Verdict, err)
		}
	}
}

// TestAVerifierWhoseTestsWereKilledIsRunAgain: it writes the same reward as for wrong work.
func TestAVerifierWhoseTestsWereKilledIsRunAgain(t *testing.T) {
	testenv.NeedTool(t, "bwrap")
	for name, test := range map[string]struct {
		kills   int
		verdict string
	}{
		"not at all": {0, grade.VerdictPass},
		"twice":      {2, grade.VerdictError},
		"each time":  {100, grade.VerdictFail},
	} {
		t.Run(name, func(t *testing.T) {
			b := hookBench(t, answerHook).agent(files{"answer": "42"})
			b.task.Hooks.Invariants = ""
			tests := t.TempDir()
			script := "#!/bin/bash\n[ \"$(cat answer)\" = 42 ] && echo 1 >/logs/verifier/reward.txt\n"
			if err := os.WriteFile(filepath.Join(tests, "test.sh"), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			b.task.Settings.Environment = &task.Environment{}
			b.task.Verifier = &task.Verifier{Tests: []string{tests}, Timeout: 5 * time.Minute}
			b.config.Spawner = &killing{
				ProcessSpawner: sandbox.NewSpawner(),
				kills:          test.kills,
				instead:        "echo 0 >/logs/verifier/reward.txt; echo 'test.sh: line 3: 7 Killed' >&2",
			}
			b.want(test.verdict, "")
		})
	}
}

// TestTestsOfSWEBenchThatWereKilledAreRunAgain: their log lacks results, as after wrong work.
func TestTestsOfSWEBenchThatWereKilledAreRunAgain(t *testing.T) {
	testenv.NeedTool(t, "bwrap")
	for name, test := range map[string]struct {
		kills   int
		verdict string
	}{
		"not at all": {0, grade.VerdictPass},
		"twice":      {2, grade.VerdictError},
		"each time":  {100, grade.VerdictFail},
	} {
		t.Run(name, func(t *testing.T) {
			b := hookBench(t, answerHook).agent(files{"answer": "42"})
			b.task.Hooks.Invariants = ""
			const begin, end = "echo '>>>>> Start Test Output'\n", "\necho '>>>>> End Test Output'\n"
			b.task.Instance = &task.Instance{
				EvalScript: begin + "[ \"$(cat answer)\" = 42 ] && echo 'PASSED t.py::a'" + end,
				LogParser:  "pytest",
				FailToPass: []string{"t.py::a"},
				Timeout:    5 * time.Minute,
			}
			b.config.Spawner = &killing{
				ProcessSpawner: sandbox.NewSpawner(),
				kills:          test.kills,
				instead:        begin + "echo 'x.sh: line 3: 7 Killed'" + end,
			}
			result := b.want(test.verdict, "")
			if failed := test.verdict == grade.VerdictError; result.Instance.InfraFailure != failed ||
				(result.Instance.Error != "") != failed {
				t.Errorf("the report is %+v", result.Instance)
			}
		})
	}
}

// TestAReversedPatchSolvesNothing: patch would turn round what takes the solution away.
func TestAReversedPatchSolvesNothing(t *testing.T) {
	testenv.NeedTool(t, "bwrap")
	testenv.NeedTool(t, "patch")
	for solved, wrong := range map[string]string{"0": "42", "42": "0"} {
		b := hookBench(t, answerHook, files{"workdir/answer": "0\n"})
		b.task.Hooks.Invariants = ""
		b.task.Instance = &task.Instance{
			EvalScript: "echo '>>>>> Start Test Output'\n[ \"$(cat answer)\" = 42 ] && echo 'PASSED t.py::a'\n" +
				"echo '>>>>> End Test Output'\n",
			LogParser:  "pytest",
			FailToPass: []string{"t.py::a"},
			Timeout:    5 * time.Minute,
		}
		cheat := cheattest.All(t, "swebench", map[string]string{"file": "answer", "solved": solved, "wrong": wrong})
		change := cheat["reversed-patch"].Files["change.diff"]
		b.config.Patch = &change
		verdict := map[string]string{"42": grade.VerdictPass, "0": grade.VerdictFail}[wrong]
		b.want(verdict, "")
	}
}

// killing runs tests that are killed so many times: instead is what happens then.
type killing struct {
	sandbox.ProcessSpawner
	kills   int
	instead string
}

// Spawn implements sandbox.ProcessSpawner.
func (k *killing) Spawn(ctx context.Context, spec sandbox.SpawnSpec, stdout, stderr io.Writer) (sandbox.SpawnResult,
	error,
) {
	if k.kills--; k.kills >= 0 {
		spec.Argv = []string{"bash", "-c", k.instead}
	}
	return k.ProcessSpawner.Spawn(ctx, spec, stdout, stderr)
}

// breakable starts programs until the sandbox breaks.
type breakable struct {
	sandbox.ProcessSpawner
	broken func(sandbox.SpawnSpec) (sandbox.SpawnResult, error)
	// accident is what happens to a program instead of running; nil: nothing.
	accident func(sandbox.SpawnSpec) *sandbox.SpawnResult
	says     string // what it prints then
}

// Spawn implements sandbox.ProcessSpawner.
func (b *breakable) Spawn(ctx context.Context, spec sandbox.SpawnSpec, stdout, stderr io.Writer) (sandbox.SpawnResult,
	error,
) {
	if b.broken != nil {
		return b.broken(spec)
	}
	if b.accident != nil {
		if result := b.accident(spec); result != nil {
			_, err := io.WriteString(stderr, b.says)
			return *result, err
		}
	}
	return b.ProcessSpawner.Spawn(ctx, spec, stdout, stderr)
}

func TestASandboxThatBreaksInMidRunIsNotTheAgentsFailure(t *testing.T) {
	ways := map[string]func(sandbox.SpawnSpec) (sandbox.SpawnResult, error){
		"cannot start": func(sandbox.SpawnSpec) (sandbox.SpawnResult, error) {
			return sandbox.SpawnResult{}, errors.New("bwrap: fork: resource temporarily unavailable")
		},
		"gives up": func(sandbox.SpawnSpec) (sandbox.SpawnResult, error) {
			return sandbox.SpawnResult{ExitCode: 1}, nil
		},
	}
	for kind, b := range map[string]*bench{
		"hook":           hookBench(t, answerHook).agent(files{"answer": "42"}),
		"tests":          nodeBench(t, nodeCheck()).agent(files{"src/add.js": addSource}),
		"unsolved tests": nodeBench(t, unsolved(nodeCheck())).agent(files{"src/add.js": addSource}),
	} {
		spawner := &breakable{ProcessSpawner: sandbox.NewSpawner()}
		b.config.Spawner = spawner
		b.want(grade.VerdictPass, "")
		for name, broken := range ways {
			t.Run(kind+" "+name, func(t *testing.T) {
				b.t = t
				spawner.broken = broken
				b.want(grade.VerdictError, "")
			})
		}
	}
}

// unsolved leaves out the reference solution.
func unsolved(content files) files {
	delete(content, "solution/src/add.js")
	return content
}

// TestOneAccidentOfAGraderIsNotTheAgentsFailure: work that is right stays right if a process of the
// grader's runs out of time once, or is killed or fails without a word twice.
func TestOneAccidentOfAGraderIsNotTheAgentsFailure(t *testing.T) {
	accidents := map[string]sandbox.SpawnResult{
		"fails without a word": {ExitCode: 1},
		"runs out of time":     {ExitCode: -1, TimedOut: true},
		"is killed":            {ExitCode: -1, Signal: "SIGKILL"},
	}
	for kind, test := range map[string]struct {
		bench *bench
		of    string // a word of the command that has the accident
	}{
		"go":             {goBench(t, goCheck()).agent(files{"sum/sum.go": goRight}), "-test.run"},
		"go's compiler":  {goBench(t, goCheck()).agent(files{"sum/sum.go": goRight}), "-vet=off"},
		"node":           {nodeBench(t, nodeCheck()).agent(files{"src/add.js": addSource}), "node"},
		"unsolved tests": {nodeBench(t, unsolved(nodeCheck())).agent(files{"src/add.js": addSource}), "node"},
		"python":         {pythonBench(t, pythonTask()).agent(files{"calc.py": pythonRight}), "python"},
		"a command": {
			newBench(t, commandTask("  command: [bash, \"{file}\", \"{nonce}\"]\n  parser: exit-nonce\n",
				"[ \"$(cat answer)\" = 42 ] && echo \"$1\"")).agent(files{"answer": "42"}), "bash",
		},
	} {
		spawner := &breakable{ProcessSpawner: sandbox.NewSpawner()}
		test.bench.config.Spawner = spawner
		test.bench.want(grade.VerdictPass, "")
		for name, accident := range accidents {
			t.Run(kind+" "+name, func(t *testing.T) {
				// By its status alone a command fails on wrong work.
				once := accident.TimedOut || kind == "a command" && accident.Signal == ""
				starts := 0 // the second may be without the agent's work
				spawner.accident = func(spec sandbox.SpawnSpec) *sandbox.SpawnResult {
					if !strings.Contains(strings.Join(spec.Argv, " "), test.of) {
						return nil
					}
					if starts++; starts == 1 || starts == 3 && !once {
						return &accident
					}
					return nil
				}
				result := test.bench.want(grade.VerdictError, "flaky")
				if !result.Unverified {
					t.Error("the agent could have arranged it, and nobody says so")
				}
				if killed := accident.Signal != ""; (result.Cause == "killed") != killed {
					t.Errorf("the cause is %q", result.Cause)
				}
			})
		}
	}
}

// TestAKilledCacheOfTheCompilerIsNotTheAgentsFailure: no code of the agent's runs beside it.
func TestAKilledCacheOfTheCompilerIsNotTheAgentsFailure(t *testing.T) {
	b := goBench(t, goCheck()).agent(files{"sum/sum.go": goRight})
	spawner, starts := &breakable{ProcessSpawner: sandbox.NewSpawner()}, 0
	b.config.Spawner, spawner.says = spawner, "GOCACHEPROG exited pre-Close with 0 pending requests\n"
	spawner.accident = func(spec sandbox.SpawnSpec) *sandbox.SpawnResult {
		if !strings.Contains(strings.Join(spec.Argv, " "), "-vet=off") {
			return nil
		}
		if starts++; starts == 2 || starts > 3 { // the second is without the agent's work
			return nil
		}
		return &sandbox.SpawnResult{ExitCode: 1}
	}
	if result := b.want(grade.VerdictError, "flaky"); !result.Unverified {
		t.Error("the agent could have arranged it, and nobody says so")
	}
}

// TestAMachineThatKillsEachCompilerIsNotTheAgentsFailure: it does so without the work, too, whether
// that is a solution or not.
func TestAMachineThatKillsEachCompilerIsNotTheAgentsFailure(t *testing.T) {
	spawner := &breakable{ProcessSpawner: sandbox.NewSpawner()}
	spawner.accident = func(spec sandbox.SpawnSpec) *sandbox.SpawnResult {
		if !strings.Contains(strings.Join(spec.Argv, " "), "-vet=off") {
			return nil
		}
		return &sandbox.SpawnResult{ExitCode: -1, Signal: "SIGKILL"}
	}
	content := goCheck()
	maps.DeleteFunc(content, func(name, _ string) bool { return strings.HasPrefix(name, "solution/") })
	b := goBench(t, content).agent(files{"sum/sum.go": goRight})
	b.config.Spawner = spawner
	b.want(grade.VerdictError, "the build was killed by SIGKILL, and without the agent's work too")
}

// A machine on which no process can be started is broken, and not the grader.
func TestAMachineThatStartsNothingIsNotAFlakyGrader(t *testing.T) {
	for kind, b := range map[string]*bench{
		"hook":  hookBench(t, answerHook).agent(files{"answer": "42"}),
		"tests": nodeBench(t, nodeCheck()).agent(files{"src/add.js": addSource}),
	} {
		for _, cause := range []error{syscall.EAGAIN, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
			b.config.Spawner = &breakable{broken: func(sandbox.SpawnSpec) (sandbox.SpawnResult, error) {
				return sandbox.SpawnResult{}, &os.PathError{Op: "fork/exec", Path: "x", Err: cause}
			}}
			if _, err := grade.Run(t.Context(), b.config); !grade.MachineFailed(err) || !errors.Is(err, cause) {
				t.Errorf("%s, %v: %v", kind, cause, err)
			}
		}
	}
}

// exhausted is a workspace on a machine that has run out of something.
type exhausted struct {
	grade.Source
	err error
}

// Copy implements grade.Source.
func (e exhausted) Copy(context.Context, workspace.CopyConfig) (*workspace.Copy, error) {
	return nil, fmt.Errorf("copy of workspace: %w", &os.PathError{Op: "write", Path: "x", Err: e.err})
}

func TestAMachineThatHasRunOutOfSomethingGivesNoVerdict(t *testing.T) {
	for kind, b := range map[string]*bench{
		"hook": hookBench(t, answerHook), "tests": nodeBench(t, nodeTask()),
	} {
		for _, err := range []error{
			syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
			syscall.EIO,
		} {
			b.config.Source = exhausted{b.ws, err}
			if result, got := grade.Run(t.Context(), b.config); !errors.Is(got, err) {
				t.Errorf("%s with %v: the grade is %q, the error %v", kind, err, result.Grade.Verdict, got)
			}
		}
	}
}

// TestAFullDiskGivesNoVerdict runs itself again with a small disk of its own.
func TestAFullDiskGivesNoVerdict(t *testing.T) {
	if os.Getenv("FIT_TEST_SMALL_DISK") == "" {
		testenv.NeedTool(t, "unshare")
		disk := t.TempDir()
		script := `mount -t tmpfs -o size=8m small "$1" && TMPDIR="$1" FIT_TEST_SMALL_DISK="$1" exec "$2" -test.run "^$3$" -test.v`
		args := []string{"--mount", "sh", "-c", script, "sh", disk, os.Args[0], t.Name()}
		if os.Getuid() != 0 {
			args = append([]string{"--user", "--map-root-user"}, args...)
		}
		out, err := exec.CommandContext(t.Context(), "unshare", args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	for kind, content := range map[string]files{
		"hook":  {"hooks/invariants.sh": answerHook, "workdir/data": strings.Repeat("x", 200<<10)},
		"tests": nodeCheck(files{"workdir/data": strings.Repeat("x", 200<<10)}),
	} {
		b := newBench(t, content).agent(files{"answer": "42", "src/add.js": addSource})
		filler := filepath.Join(os.Getenv("FIT_TEST_SMALL_DISK"), "filler")
		fill(t, filler)
		if result, err := grade.Run(t.Context(), b.config); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: a full disk gave %q, %v\n%s", kind, result.Grade.Verdict, err, describe(result))
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		b.want(grade.VerdictPass, "")
	}
}

// fill writes to a file until the disk is full.
func fill(t *testing.T, name string) {
	t.Helper()
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for block := make([]byte, 64<<10); err == nil; _, err = file.Write(block) {
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// Checks that run out of time, whatever they print, are run again once, and not once for each.
func TestTimeoutsOfOneGradingDoNotMultiply(t *testing.T) {
	for _, limit := range testenv.Limits() {
		runs := filepath.Join(t.TempDir(), "runs")
		check := "echo 1..1; echo ok 1 - a; [ ! -e bomb ] || { echo run >>" + runs + "; echo Killed; sleep 1000; }\n"
		b := newBench(t, files{
			"task.yaml": fmt.Sprintf("isolation: none\ntimeouts: {test: %s}\n", limit) +
				"tests: {language: other, files: ['*.sh'], command: [sh, '{file}'], parser: tap}\n",
			"tests/a.sh": check, "tests/b.sh": check, "tests/c.sh": check,
		})
		result := b.agent(files{"bomb": ""}).grade()
		if result.Grade.Verdict == grade.VerdictError { // a slow machine
			continue
		}
		content, err := os.ReadFile(runs)
		if n := strings.Count(string(content), "run"); err != nil || n != 4 {
			t.Errorf("three checks that hang ran %d times, want 4: %v", n, err)
		}
		if result.Grade.Verdict != grade.VerdictFail {
			t.Errorf("work that hangs is not failed: %s", describe(result))
		}
		return
	}
	t.Error("the machine is too slow for any limit")
}
