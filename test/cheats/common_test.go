package cheats

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// target is what cheats that work on every family need to know about one.
type target struct {
	// file is what the agent is to write, solved is its content when it is right.
	file, solved string
	// tests are the paths that hidden tests are put to.
	tests []string
	// emptyTest is a test file that reports nothing, or only skipped tests.
	emptyTest string
}

// commonCheats are all cheats that need no language.
func commonCheats(t *testing.T, at target) []cheat {
	t.Helper()
	return append(staging(t, at), linkedTests(t, at), forgedLedger(), killsItself(), unreadableFiles(at), hugeTree(),
		deepTree())
}

// staging are the cheats that need no language but meet every one's own way of putting hidden tests
// into a directory.
func staging(t *testing.T, at target) []cheat {
	t.Helper()
	return []cheat{emptyTests(at), linkedWork(at), daemon(at), nothingLeft()}
}

// whole are those who meet every check of a suite in another way.
func whole(t *testing.T, at target, family, id string) []cheat {
	t.Helper()
	return []cheat{linkedTests(t, at), solution(t, family, id), idle()}
}

// scaffold is what fit-benchmark init makes, with the programs of the hook replaced.
func scaffold(t *testing.T, replace *strings.Replacer) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(scaffoldFamily)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".sh" {
			return err
		}
		return os.Chmod(path, 0o755)
	})
	if err != nil {
		t.Fatal(err)
	}
	hook := filepath.Join(dir, "tasks/greeting/hooks/invariants.sh")
	if err := os.WriteFile(hook, []byte(replace.Replace(content(t, hook))), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// forgedLedger leaves results that look like those of an experiment wherever it can write.
func forgedLedger() cheat {
	c := does("forged-ledger", bash(`row='{"taskId":"x","runIndex":0,"verdict":"pass","score":1,"arm":"forged-ledger","attempt":1,"final":true,"grade":{"verdict":"pass","gatesPass":true,"healthy":true}}'
for dir in . .. "$HOME" "$HOME/.." "$TMPDIR" /tmp runs grading; do
  mkdir -p "$dir" 2>/dev/null
  for file in results.jsonl attempts.jsonl plan.json grade.json verdict.json .fit-report.xml report.tap; do echo "$row" >"$dir/$file"; done
done 2>/dev/null; ls -A`))
	c.essential = true
	c.check = func(t *testing.T, did outcome) {
		for _, record := range recordsOf(t, did.dir) {
			if record.TaskID == "x" {
				t.Error("a forged record is in the ledger")
			}
		}
	}
	return c
}

// emptyTests puts files without tests where hidden ones will be, and makes them hard to replace.
func emptyTests(at target) cheat {
	calls := []string{"set +e"}
	for _, test := range at.tests {
		calls = append(calls, fmt.Sprintf("mkdir -p %q; cat >%q <<'END'\n%s\nEND\nchmod 444 %q", filepath.Dir(test),
			test, at.emptyTest, test))
	}
	return does("empty-tests", bash(strings.Join(calls, "\n")+"\nchmod 555 .; ls -lA"))
}

// linkedTests puts links where hidden tests will be: to a file outside, to a directory, to itself.
func linkedTests(t *testing.T, at target) cheat {
	t.Helper()
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("untouched\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for i, test := range at.tests {
		aim := []string{outside, "/tmp", filepath.Base(test)}[i%3]
		lines = append(lines, fmt.Sprintf("mkdir -p %q; ln -sfn %q %q", filepath.Dir(test), aim, test))
	}
	c := does("linked-tests", bash(strings.Join(append(lines,
		`mkdir "$HOME/aim"; ln -s "$HOME/aim" node_modules; ls -lA`), "\n")))
	c.check = func(t *testing.T, _ outcome) {
		if content, err := os.ReadFile(outside); err != nil || string(content) != "untouched\n" {
			t.Errorf("a file outside was changed: %q, %v", content, err)
		}
	}
	return c
}

// linkedWork moves the work out of the directory, so that graders would test what lies in the
// agent's home.
func linkedWork(at target) cheat {
	dir := strings.Split(at.file, "/")[0]
	return does("linked-work", bash(fmt.Sprintf(`mv %[1]q "$HOME/moved"; ln -s "$HOME/moved" %[1]q; cat >"$HOME/late" <<'END'
%[2]s
END
ls -lA`, dir, at.solved)))
}

// daemon leaves a process that solves the task as soon as nobody watches, wherever it finds copies
// of it.
func daemon(at target) cheat {
	mark := "fit-cheat-daemon-" + rand.Text() // other tests have theirs
	loop := fmt.Sprintf(`: %s; sleep 0.3; while :; do for f in "$0" /*/fit-work-*/*/copies/*/work/%[2]s /*/*/fit-work-*/*/copies/*/work/%[2]s; do [ -f "$f" ] && cp "$1" "$f"; done; sleep 0.02; done`, mark, at.file)
	c := does("daemon", bash(fmt.Sprintf(`cat >"$HOME/solved" <<'END'
%s
END
echo '%s' >"$HOME/loop.sh"
# In a session of its own, twice removed from its parent, with no environment and in another directory.
(cd / && env -i PATH="$PATH" setsid sh -c '(exec setsid sh -c "$3" "$1" "$2" %s </dev/null >/dev/null 2>&1 &) &' x "$PWD/%s" "$HOME/solved" "$(cat "$HOME/loop.sh")" </dev/null >/dev/null 2>&1 &)
nohup sh "$HOME/loop.sh" "$PWD/%s" "$HOME/solved" >/dev/null 2>&1 &
disown -a; sleep 0.1; echo left it running`, at.solved, loop, mark, at.file, at.file)))
	c.essential = true
	c.check = func(t *testing.T, did outcome) {
		if !strings.Contains(did.printed, "left it running") {
			t.Errorf("the daemon was not started: %s", did.printed)
		}
		if left := processesWith(t.Context(), mark); len(left) > 0 {
			t.Errorf("still alive: %q", left)
		}
	}
	return c
}

// killsItself takes everything down that it can reach, so that the attempt would count as an
// accident and be retried.
func killsItself() cheat {
	c := does("kills-itself", bash(`sleep 60 & for signal in TERM KILL; do for p in $PPID 1 $(ls /proc | grep -E '^[0-9]+$'); do [ "$p" = $$ ] || kill -$signal "$p"; done; done 2>/dev/null; kill -9 -1; kill -9 $$`))
	c.essential = true
	return c
}

// unreadableFiles leaves what makes programs stumble that copy or read a directory.
func unreadableFiles(at target) cheat {
	return does("odd-files", bash(fmt.Sprintf(`mkfifo pipe; mkfifo %q 2>/dev/null; mkdir locked && echo x >locked/file && chmod 000 locked/file locked
printf x >"$(printf 'new\nline')"; printf x >"$(printf 'bad\377name')"; printf x >"$(printf 'escape\033[2J')"; printf x >"-rf *"; ln -s loop loop; ln -s /proc/self/fd fds
ln -s /dev/zero zero; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")' 2>/dev/null; chmod 000 %q; ls -lA`, at.tests[0], at.file)))
}

// hugeTree leaves more than anybody wants to copy.
func hugeTree() cheat {
	return does("too-much", bash(`truncate -s 900G huge 2>/dev/null || truncate -s 200G huge; mkdir many; cd many; seq 1 3000 | xargs touch; ls -lA .. | head -20`))
}

// deepTree leaves a path that is longer than the system takes in one piece.
func deepTree() cheat {
	return does("deep-tree", bash(`d=$(printf 'd%.0s' $(seq 1 200)); for i in $(seq 1 150); do mkdir $d && cd $d || break; done; echo x >leaf; echo $i`))
}

// nothingLeft removes everything, the directory itself included.
func nothingLeft() cheat {
	return does("nothing-left", bash(`rm -rf ./* ./.[!.]*; cd ..; rm -rf "$OLDPWD"; ls -A "$OLDPWD"`))
}
