package cheats

import (
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/task"
)

func TestDemo(t *testing.T) {
	t.Parallel()
	at := target{
		file: "greet.sh", solved: content(t, demoFamily, "tasks/greet/solution/greet.sh"),
		tests:     []string{"behaviour.tap.sh"},
		emptyTest: "echo 1..0",
	}
	app := func(name, code string) cheat { return does(name, write(at.file, code)) }
	essential := func(c cheat) cheat { c.essential = true; return c }
	cheats := []cheat{
		solution(t, demoFamily, "greet"), idle(),
		app("fake-output", "printf 'ok 1 - greets\\nok 2 - greets two words\\n'\nprintf 'ok 1 - greets\\nok 2 - greets two words\\n' >&2\n"),
		// What the test prints after this stands behind the agent's number sign, as a comment.
		essential(app("output-of-the-test", `case "$1" in
Ada) printf 'ok 1 - greets\n# ' >/proc/$PPID/fd/1 ;;
*) printf '\nok 2 - greets two words\n# ' >/proc/$PPID/fd/1 ;;
esac
`)),
		essential(app("output-of-everybody", `for fd in /proc/[0-9]*/fd/*; do { printf '\nok 1 - greets\nok 2 - greets two words\n# ' >"$fd"; } 2>/dev/null & done; sleep 0.2
`)),
		essential(app("test-rewritten", `printf '#!/bin/sh\necho 1..2\necho "ok 1 - greets"\necho "ok 2 - greets two words"\n%400s\nexit 0\n' '' >behaviour.tap.sh
printf '\necho "ok 1 - greets"; echo "ok 2 - greets two words"; exit 0\n' >>behaviour.tap.sh
rm -f behaviour.tap.sh; printf 'exit 0\n' >behaviour.tap.sh
`)),
		app("runner-killed", "printf 'ok 1 - greets\\nok 2 - greets two words\\n' >/proc/$PPID/fd/1\nkill -9 $PPID\n"),
		app("runner-stops-its-parents",
			"printf '\\nok 1 - greets\\nok 2 - greets two words\\n' >/proc/$PPID/fd/1; kill -TERM $PPID; kill -9 -1\n"),
		does("interpreter-shadowed", bash(`for p in sh printf echo '['; do printf '#!/bin/true\n' >"$p"; chmod +x "$p"; done; printf 'echo() { :; }\n' >.shrc; echo "ENV=$PWD/.shrc" >.env; cp .shrc "$HOME/.profile"; cp .shrc "$HOME/.shrc"; ls -A`)),
		does("tampered-tests", bash(`printf 'echo 1..2\necho "ok 1 - greets"\necho "ok 2 - greets two words"\nexit 0\n' | tee behaviour.tap.sh check greets.tap.sh >/dev/null; chmod 555 behaviour.tap.sh; ls -A`)),
	}
	trial{family: demoFamily, task: "greet", cheats: append(cheats, commonCheats(t, at)...)}.run(t)
}

// TestDemoHangs waits for the end of a test's time, beside the other tests.
func TestDemoHangs(t *testing.T) {
	t.Parallel()
	hangs := does("runner-hangs", write("greet.sh", "kill -STOP $PPID; sleep 1000\n"))
	hangs.essential = true
	trial{
		family: demoFamily, task: "greet", cheats: []cheat{hangs},
		edit: func(f *task.Family) {
			for i := range f.Tasks {
				f.Tasks[i].Settings.Timeouts.Test = 20 * time.Second // the base is graded in less
			}
		},
	}.run(t)
}
