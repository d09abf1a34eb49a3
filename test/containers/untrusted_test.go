package containers

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fit-eval/fit/internal/cheattest"
	"github.com/fit-eval/fit/internal/containertest"
)

// In a container, a program that a hook runs by fit-untrusted sees the work and the image, and the
// hook sees nothing of other tasks. It has a home and an input of its own.
func TestUntrustedProgramsInAContainer(t *testing.T) {
	b := newBench(t)
	const hook = `#!/bin/bash
# HIDDEN-WORD
export SECRET=HIDDEN-WORD
echo HIDDEN-WORD >"$TMPDIR/expected"; echo HIDDEN-WORD >/tmp/expected
ls "$FAMILY_DIR/tasks/two" >/dev/null 2>&1 && { echo '{"test":"answer","pass":false,"message":"the hook sees another task"}' >&3; exit; }
ls "$TASK_DIR/solution" 2>&1 | grep -q . && { echo '{"test":"answer","pass":false,"message":"the hook sees the solution"}' >&3; exit; }
out=$(fit-untrusted ./program "$FAMILY_DIR" "$TASK_DIR" "$HOOKS_DIR" 2>&1)
home=$(fit-untrusted sh -c 'echo left >"$HOME/.jq" && cat "$HOME/.jq"; echo forged >"$1/.jq"' sh "$HOME" 2>/dev/null)
input=$(echo own | fit-untrusted cat; printf '1\n2\n' | while read -r case; do fit-untrusted cat 2>/dev/null; done)
[ "$home:$(ls -A "$HOME"):$input" = left::own ] || out="home $home, left $(ls -A "$HOME"), input $input"
[ "$out" = 42 ] && [ -f sub/made-by-the-program ] && pass=true || { pass=false; echo "$out" >&2; }
echo "{\"test\":\"answer\",\"pass\":$pass,\"message\":\"$(echo $out)\"}" >&3
`
	tasks := filepath.Join(b.dir, "family", "tasks")
	if err := os.RemoveAll(tasks); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"../family.yaml": "image: " + containertest.Image(t) + "\n", "../HIDDEN": "HIDDEN-WORD\n",
		"one/agent.task.md": "Do it.\n", "one/workdir/program": "#!/bin/bash\necho 1\n",
		"one/task.yaml": "checks: [answer]\n", "one/hooks/invariants.sh": hook,
		"one/solution/program": cheattest.All(t, "any", nil)["searcher"].Files["program"],
		"two/agent.task.md":    "HIDDEN-WORD\n", "two/workdir/program": "HIDDEN-WORD\n",
		"two/hooks/invariants.sh": "#!/bin/sh\n# HIDDEN-WORD\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(tasks, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
				t.Fatal(err)
			}
		})
	}
	code, stdout, stderr := fit(t, b.dir, "lint", "--family", "family", "--task", "one")
	if code != 0 {
		t.Errorf("lint: %d\n%s\n%s", code, stdout, stderr)
	}
}

// Links of a program, or of the work itself, lead a hook in a container to nothing that it hides.
func TestLinksToHiddenFilesInAContainer(t *testing.T) {
	b := newBench(t)
	hooks := filepath.Join(b.dir, "family", "tasks", "answer", "hooks")
	const compares = `#!/bin/bash
fit-untrusted ./program "$HOOKS_DIR" >&2 || ended=$?
echo 42 >/tmp/made-later
wrong=$(ls by-path by-descriptor by-device tree/expected by-way closed/answer nested/closed/answer far/answer by-link later left left-later 2>/dev/null)
[ "$(cat answer.txt)" = 42 ] && [ -z "$wrong$ended" ] && pass=true || pass=false
echo "{\"test\":\"answer\",\"pass\":$pass,\"message\":\"$(echo $wrong)\"}" >&3
`
	program := cheattest.All(t, "any", nil)["links-to-hidden"].Files["program"]
	tasks := filepath.Join(b.dir, "family", "tasks", "answer")
	for name, content := range map[string]string{
		"hooks/invariants.sh": compares, "hooks/expected": "42\n", "workdir/program": program,
		"task.yaml": "checks: [answer]\n", "solution/answer.txt": "42\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(tasks, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
				t.Fatal(err)
			}
		})
	}
	for name, target := range map[string]string{
		"left": filepath.Join(hooks, "expected"), "left-later": "/proc/self/fd/3",
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.Symlink(target, filepath.Join(tasks, "solution", name)); err != nil {
				t.Fatal(err)
			}
		})
	}
	if code, stdout, stderr := fit(t, b.dir, "lint", "--family", "family"); code != 0 {
		t.Errorf("lint: %d\n%s\n%s", code, stdout, stderr)
	}
}
