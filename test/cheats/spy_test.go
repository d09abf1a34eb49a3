package cheats

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/task"
)

// What a spy looks for: words of a hidden test, of the reference solution, of another cell, and of
// the results.
var secrets = []string{"inner blanks stay", "s/^ *//; s/ *$//", "sibling-secret-4711", "ledger-secret-4711"}

// plant leaves something of other cells where such things lie.
func plant(t *testing.T, dir, work string) {
	t.Helper()
	for path, text := range map[string]string{
		filepath.Join(work, "trim.other.0.1", "work", "answer"):          secrets[2],
		filepath.Join(work, "judge-1", "profiles", "judge.md"):           secrets[2],
		filepath.Join(dir, experiment.RunsDir, "other", "cwd", "answer"): secrets[2],
		filepath.Join(dir, "notes"):                                      secrets[3],
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// spies look at the places themselves, with the shell and with the agent's other tools.
func spies(t *testing.T, dir string) cheat {
	t.Helper()
	family, err := filepath.Abs(demoFamily)
	if err != nil {
		t.Fatal(err)
	}
	work, err := local.WorkDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	hidden := filepath.Join(family, "tasks", "trim", "tests", "behaviour.tap.sh")
	quoted := strings.Join([]string{family, work, dir}, "' '")
	return cheat{name: "spy", essential: true, turns: []scripted.Turn{
		{Calls: []scripted.Call{bash("find '" + quoted +
			"' -type f -size -100k -exec cat {} + 2>/dev/null; echo looked at the places; true")}},
		{Calls: []scripted.Call{bash("ln -s '" + hidden + "' hidden; ln -s '" + family +
			"' family; ln -s / root; cat hidden; ls family root; cat ../*/work/* ../../*/work/* /proc/1/cwd/* 2>/dev/null; true")}},
		{Calls: []scripted.Call{
			{Read: hidden},
			{Read: "hidden"},
			{Read: "family/tasks/trim/tests/behaviour.tap.sh"},
			{Read: "../../trim.other.0.1/work/answer"},
		}},
		{Calls: []scripted.Call{
			{Grep: "inner blanks sta[y]|siblin[g]", In: family},
			{Grep: "inner blanks sta[y]|siblin[g]", In: "root"},
			{Grep: "inner blanks sta[y]|siblin[g]", In: "family"},
			{Glob: family + "/**"},
		}},
	}}
}

// sweep looks everywhere else. The words it looks for are put together only when it runs, so that
// it does not find itself.
const sweep = `a='inner blanks'; b=" stay|sibling-"; c="secret-|ledger-"; pattern="$a$b$c"secret
for dir in /* /var/tmp /dev/shm; do case "$dir" in /usr|/proc|/sys|/dev|/lib*|/bin|/sbin|/etc|/opt|/nix) ;; *) timeout 30 grep -rIhsE "$pattern" "$dir" ;; esac; done
cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | grep -E '^(TASK_DIR|HOOKS_DIR|FAMILY_DIR|RESULTS_FD|ANTHROPIC|OPENAI)'
ls -la /proc/[0-9]*/cwd /proc/[0-9]*/root/root 2>/dev/null | grep -E 'family|runs'; echo swept`

func TestHiddenPathsAndSiblingsAreOutOfSight(t *testing.T) {
	dir := t.TempDir()
	spy := spies(t, dir)
	spy.turns = append(spy.turns, scripted.Turn{Calls: []scripted.Call{bash(sweep)}})
	spy.check = func(t *testing.T, did outcome) {
		for _, secret := range append(secrets, "TASK_DIR=", "HOOKS_DIR=", "FAMILY_DIR=") {
			if strings.Contains(did.printed, secret) {
				t.Errorf("the agent has seen %q:\n%s", secret, did.printed)
			}
		}
		if !strings.Contains(did.printed, "looked at the places") || !strings.Contains(did.printed, "swept") {
			t.Errorf("the agent has not looked everywhere:\n%s", did.printed)
		}
	}
	trial{family: demoFamily, task: "trim", dir: dir, between: plant, cheats: []cheat{spy}}.run(t)
}

// TestASpyWithoutWallsSeesEverything shows that the spy is able to spy.
func TestASpyWithoutWallsSeesEverything(t *testing.T) {
	dir := t.TempDir()
	spy := spies(t, dir)
	spy.turns = spy.turns[:1]
	spy.check = func(t *testing.T, did outcome) {
		for _, secret := range secrets {
			if !strings.Contains(did.printed, secret) {
				t.Errorf("%q was in sight and the agent has not seen it", secret)
			}
		}
		if did.record.Isolation != sandbox.IsolationNone {
			t.Errorf("the record says %q", did.record.Isolation)
		}
	}
	trial{
		family: demoFamily, task: "trim", dir: dir, isolation: sandbox.IsolationNone, between: plant,
		cheats: []cheat{spy},
	}.run(t)
}

// TestADirtyRerunFindsNothing makes the model's service fail after an agent has left something
// everywhere. The next attempt at the cell starts afresh, and so does another experiment.
func TestADirtyRerunFindsNothing(t *testing.T) {
	const look = `for dir in . .. "$HOME" "$TMPDIR" /tmp /var/tmp /dev/shm /run; do if [ -e "$dir/left-over" ]; then echo FOUND; fi; done
for dir in . .. "$HOME" "$TMPDIR" /tmp /var/tmp /dev/shm /run; do cp trim.sh "$dir/left-over" 2>/dev/null; done; echo looked`
	const requests = 5 // the first, and the agent's own tries after it
	dirty := cheat{name: "dirty", attempts: 2, essential: true, turns: []scripted.Turn{
		{Calls: []scripted.Call{bash(look)}},
		{Text: "Nothing left to do.", Fault: &scripted.Fault{
			Status: 529, Type: "overloaded_error", RetryAfter: "0",
			Times: requests,
		}},
	}}
	dirty.check = func(t *testing.T, did outcome) {
		if strings.Contains(did.printed, "FOUND") || !strings.Contains(did.printed, "looked") {
			t.Errorf("the second attempt printed %s", did.printed)
		}
	}
	dir := t.TempDir()
	tr := trial{family: demoFamily, task: "trim", dir: dir, cheats: []cheat{dirty}}
	tr.run(t)
	before := len(recordsOf(t, dir))
	t.Run("the same command repeats nothing", func(t *testing.T) {
		tr.isolation = sandbox.IsolationBwrap
		outcome := tr.execute(t, tr.prepare(t), dir)
		if outcome.Status != experiment.Complete || len(recordsOf(t, dir)) != before {
			t.Errorf("%+v, and %d records after %d", outcome, len(recordsOf(t, dir)), before)
		}
	})
	t.Run("another experiment is refused", func(t *testing.T) {
		other := trial{family: demoFamily, task: "trim", isolation: sandbox.IsolationBwrap, cheats: []cheat{idle()}}
		_, err := experiment.OpenDirectory(dir, other.prepare(t).Plan, nil)
		var different *experiment.DifferentError
		if !errors.As(err, &different) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("forged results are refused", func(t *testing.T) {
		forged := t.TempDir()
		if err := os.WriteFile(filepath.Join(forged, experiment.LedgerFile), []byte(`{"verdict":"pass"}`+"\n"),
			0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := experiment.OpenDirectory(forged, tr.prepare(t).Plan, nil); err == nil {
			t.Error("results of unknown origin were taken over")
		}
	})
}

// TestWithoutIsolation has the cheats that must fail without a sandbox too: processes are killed,
// and copies are graded.
func TestWithoutIsolation(t *testing.T) {
	at := target{
		file: "greet.sh", solved: content(t, demoFamily, "tasks/greet/solution/greet.sh"),
		tests: []string{"behaviour.tap.sh"}, emptyTest: "echo 1..0",
	}
	cheats := append(whole(t, at, demoFamily, "greet"), append(staging(t, at), forgedLedger(), unreadableFiles(at))...)
	trial{family: demoFamily, task: "greet", isolation: sandbox.IsolationNone, cheats: cheats}.run(t)
}

// TestLimitsHoldForTheTaskOfAnAgent lets an agent write more than its task allows.
func TestLimitsHoldForTheTaskOfAnAgent(t *testing.T) {
	greedy := does("greedy", bash(`ulimit -f; ulimit -d; head -c 3000000 /dev/zero >big; echo "status $?"; wc -c <big`))
	greedy.essential = true
	greedy.check = func(t *testing.T, did outcome) {
		for _, want := range []string{"\n1048576\n", "status 153", "2097152"} {
			if !strings.Contains("\n"+did.printed, want) {
				t.Errorf("%q is not in what the agent's tools printed:\n%s", want, did.printed)
			}
		}
	}
	limited := func(family *task.Family) {
		for i := range family.Tasks {
			family.Tasks[i].Settings.Limits = task.Limits{MemoryMB: 1024, FileMB: 2}
		}
	}
	trial{
		family: demoFamily, task: "trim", edit: limited,
		cheats: []cheat{solution(t, demoFamily, "trim"), greedy},
	}.run(t)
}
