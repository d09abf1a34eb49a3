package cheats

import (
	"strings"
	"testing"
)

// scaffoldFamily is what fit-benchmark init makes: its hook runs a program of the agent.
const scaffoldFamily = "../../internal/cli/benchmarkcli/scaffold"

// forgedRows are the rows that would be full marks, and one that nobody asked for.
const forgedRows = `rows='{"test":"greet.sh can be run","pass":true,"gate":true}
{"test":"greets a person","pass":true,"weight":2}
{"test":"greets the world","pass":true}
{"test":"extra credit","pass":true,"weight":1000}'
`

// hookCheats are programs that try to reach the rows of the hook that runs them. None of them
// greets anybody.
func hookCheats() []cheat {
	program := func(name, code string) cheat {
		c := does(name, write("greet.sh", "#!/bin/sh\n"+forgedRows+code), bash("chmod +x greet.sh; ls -l greet.sh"))
		c.essential = true
		c.check = func(t *testing.T, did outcome) {
			t.Helper()
			if did.record.Score != nil && *did.record.Score != 0 {
				t.Errorf("the score is %v%s", *did.record.Score, explain(did.record))
			}
			if strings.Contains(explain(did.record), "extra credit") {
				t.Errorf("a forged row is in the record:%s", explain(did.record))
			}
		}
		return c
	}
	return []cheat{
		program("descriptor-3", `for fd in 3 4 5 6 7 8 9; do (echo "$rows" >&$fd) 2>/dev/null; done; (echo "$rows" >/dev/fd/3) 2>/dev/null; true`),
		program("descriptor-of-the-parent",
			`for pid in $PPID $(ls /proc | grep -E '^[0-9]+$'); do for fd in 1 3 4 5 10; do (echo "$rows" >/proc/$pid/fd/$fd) 2>/dev/null; done; done; true`),
		program("variables-of-the-parent", `for pid in $PPID $(ls /proc | grep -E '^[0-9]+$'); do
  dir=$(tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | sed -n 's/^TASK_DIR=//p' | head -n 1)
  if [ -n "$dir$TASK_DIR$HOOKS_DIR$RESULTS_FD" ]; then . "${dir:-$TASK_DIR}/hooks/../solution/greet.sh"; fi
done; true`),
		program("kills-the-parent", `(echo "$rows" >&3) 2>/dev/null; kill -9 $PPID; kill -9 -1`),
		program("kills-now-and-then", `[ $(($(date +%N | tail -c 2) % 2)) = 0 ] || exit 0
for pid in $PPID $(ls /proc | grep -E '^[0-9]+$') -1; do kill -9 $pid; done; sleep 1 & exec prlimit --cpu=0 --pid $PPID`),
		program("leaves-the-streams-unusable", `python3 -c 'import os
for fd in 0, 1, 2: os.set_blocking(fd, False)'; sleep 30 & true`),
		program("rows-on-the-output", `echo "$rows"; echo "$rows" >&2`),
	}
}

// greets solves the task.
func greets(t *testing.T, family string) cheat {
	t.Helper()
	honest := solution(t, family, "greeting")
	honest.calls = append(honest.calls, bash("chmod +x greet.sh"))
	return honest
}

func TestProgramsThatAHookRunsGainNothingByForgedRows(t *testing.T) {
	family := scaffold(t, strings.NewReplacer())
	trial{family: family, task: "greeting", cheats: append([]cheat{greets(t, family), idle()}, hookCheats()...)}.run(t)
}

// TestUndeclaredRowsFailTheAttempt has a hook that trusts the agent's program: what that one adds
// is found out by the declaration.
func TestUndeclaredRowsFailTheAttempt(t *testing.T) {
	family := scaffold(t, strings.NewReplacer("$(fit-untrusted ", "$("))
	added := greets(t, family)
	added.name, added.honest = "adds-a-row", false
	added.calls = append(added.calls,
		bash("cat >>greet.sh <<'END'\n"+forgedRows+"(echo \"$rows\" | tail -n 1 >&3) 2>/dev/null\nEND"))
	repeated := does("repeats-rows",
		write("greet.sh", "#!/bin/sh\n"+forgedRows+"(echo \"$rows\" | head -n 3 >&3) 2>/dev/null\n"), bash(
			"chmod +x greet.sh"))
	for _, c := range []*cheat{&added, &repeated} {
		c.check = func(t *testing.T, did outcome) {
			if did.record.Score == nil || *did.record.Score != 0 || did.record.Grade.Reason == "" {
				t.Errorf("forged rows are not told of: %s", explain(did.record))
			}
		}
	}
	trial{family: family, task: "greeting", cheats: []cheat{greets(t, family), added, repeated}}.run(t)
}
