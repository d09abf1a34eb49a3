package session_test

import (
	"strings"
	"testing"

	"github.com/fit-eval/fit/session"
)

func TestCommandsAreTheCallsThatAShellMakes(t *testing.T) {
	for command, want := range map[string]string{
		`git log --all`: "git log --all",
		`bash -lc 'cd a && git log "--all" | head -3'`: "cd a,&& git log --all,| head -3",
		`FOO=1 sudo go test ./... || true`:             "go test ./...,|| true",
		`go test 2>&1 | tail; exit 0`:                  "go test 2>&1,| tail,; exit 0",
		`echo "$(git stash list)" 'a; b'`:              "( git stash list,echo $(git stash list) a; b",
		"x=`git reflog`":                               "( git reflog",
		"cat > n.md <<'EOF'\ngit log --all\nEOF\nls":   "cat > n.md,; ls",
		"bash <<EOF\ngit fsck\nEOF":                    "bash,; git fsck",
		"cat <<EOF && ls\ntext":                        "cat,&& ls",
		`if git diff; then make; fi`:                   "git diff,; make",
		`sh -c "sh -c 'env'"`:                          "env",
		"cat <<EOF $(id)\ngit log":                     "( id,cat $(id)",
		`diff <(git log) b > c`:                        "( git log,diff <(git log) b > c",
		`export A=1 && env 2>/dev/null &`:              "export A=1,&& env 2>/dev/null",
		`git log --all "; ls`:                          "git log --all,; ls",
		`for f in $(git ls-files); do rm "$f"; done`:   "( git ls-files,rm $f",
		`(cd a; ls)`:                                   "( cd a,; ls",
		``:                                             "",
		`'`:                                            "",
		"<<":                                           "<<",
	} {
		t.Run(command, func(t *testing.T) {
			var got []string
			for _, call := range session.Commands(command) {
				got = append(got, strings.TrimSpace(call.After+" "+strings.Join(call.Words, " ")))
			}
			if text := strings.Join(got, ","); text != want {
				t.Errorf("%q: %q, want %q", command, text, want)
			}
		})
	}
}

func FuzzCommands(f *testing.F) {
	f.Add("a $(b `c` $(d)) <<E\nx\nE\n; bash -c 'bash -c \"e\"'")
	f.Add(strings.Repeat("$(", 1000))
	f.Fuzz(func(t *testing.T, command string) {
		for _, call := range session.Commands(command) {
			if len(call.Words) == 0 || call.Name() == "" {
				t.Fatalf("%q: a call without a program", command)
			}
		}
	})
}
