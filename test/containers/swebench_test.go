package containers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/containertest"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/internal/testenv"
)

// makeTestbed makes a repository as images of SWE-bench have it: the files are those of a commit on
// top of the base, and everything that came later is there, too.
const makeTestbed = `set -eu
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_CONFIG_GLOBAL=/dev/null
git init -q -b main testbed; cd testbed
mkdir tests; echo 'add() { echo $(($1 + $2)); }' > calc.sh; echo 'check add 3 "$(add 1 2)"' > tests/add.sh
git add -A; git commit -q -m past; echo build > .gitignore; git add -A; git commit -q -m base
git rev-parse HEAD > ../base
echo 'mul() { echo $(($1 * $2)); } # GOLD' >> calc.sh; git diff > ../gold
echo 'check mul 6 "$(mul 2 3)"' > tests/mul.sh; git add -A; git diff --cached HEAD -- tests > ../tests
git commit -q -m 'the future: GOLD'; git tag v2; git gc -q
git stash store -m GOLD HEAD 2>/dev/null || true
git checkout -q -b work $(cat ../base); echo installed > installed.txt; mkdir build; echo GOLDEN > build/out
git add -A; git commit -q -m SWE-bench; git remote add origin https://example.com/GOLD.git
`

const testbedScript = `#!/bin/bash
set -uxo pipefail
cd /testbed
cat installed.txt build/out
git checkout %s tests/add.sh
git apply -v - <<'EOF_1'
%s
EOF_1
check() { if [ "$2" = "$3" ]; then echo "PASSED $1"; else echo "FAILED $1"; code=1; fi; }
run() { code=0; . ./calc.sh; for t in tests/*.sh; do . ./$t; done; return $code; }
: '>>>>> Start Test Output'
run
: '>>>>> End Test Output'
git checkout %[1]s tests/add.sh
`

// spy looks for the future in every way that git has, solves the task, and destroys the repository.
const spy = `{"turns":[{"calls":[{"bash":"cd /testbed; { git rev-list --all | wc -l; git log --oneline | wc -l; git cat-file --batch-all-objects --batch | grep -c GOLD; grep -rl GOLD .git; git reflog | wc -l; git tag; git remote; git stash list; cat installed.txt; } > seen.txt 2>&1; echo 'mul() { echo $(($1 * $2)); }' >> calc.sh; echo 'check add 3 3' > tests/add.sh; git commit -q -a -m mine; rm -rf .git"}]},{"text":"Done."}]}`

// SWE-bench rows run in their images: lint, an agent, its prediction, and the same again by the
// prediction alone.
func TestSWEBenchRowsRunInTheirImages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.url = scriptedtest.ServeAll(t, map[string]string{"": spy}, scripted.Options{})
	sh := exec.Command("sh", "-c", makeTestbed)
	sh.Dir = b.dir
	if out, err := sh.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	image := fmt.Sprintf("localhost/fit-test-swebench-%d:1", os.Getpid())
	podman := testenv.NeedTool(t, "podman")
	b.write("Dockerfile", "FROM "+containertest.Image(t)+"\nCOPY testbed /testbed\nWORKDIR /testbed\n")
	build := exec.Command(podman, "build", "-q", "--pull=never", "-t", image, b.dir)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command(podman, "rmi", "--force", image).Run() })
	base, tests := strings.TrimSpace(b.read("base")), b.read("tests")
	row := map[string]any{
		"repo": "mini/calc", "instance_id": "mini__Calc-1", "base_commit": base, "patch": b.read("gold"),
		"test_patch": tests, "problem_statement": "mul is missing.", "FAIL_TO_PASS": []string{"mul"},
		"PASS_TO_PASS": `["add"]`, "eval_script": fmt.Sprintf(testbedScript, base, strings.TrimSpace(tests)),
		"log_parser": "parse_log_pytest", "eval_type": "pass_and_fail",
	}
	line, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	b.write("set/rows.jsonl", string(line)+"\n")
	b.write("set/family.yaml", "swebench: rows.jsonl\nnetwork: {grader: false}\nimages:\n"+
		"  swebench/sweb.eval.x86_64.mini_1776_calc-1:latest: "+image+"\n")

	out := b.fit(0, "lint", "--family", "set", "--repeat", "1")
	if !strings.Contains(out, "1 task, 0 errors, 0 warnings") {
		t.Error(out)
	}
	out = b.fit(0, "run", "--family", "set", "--output", "swe", "--network", "model", "--no-probe", "--format", "json",
		"--runs", "1", "--arm", "spy=agent:builtin,model:claude-sonnet-4-5,modelUrl:"+b.url)
	if !strings.Contains(out, `"verdict":"pass"`) || !strings.Contains(out, `"isolation":"podman"`) {
		t.Error(out)
	}
	predictions := b.fit(0, "export", "swe")
	b.write("predictions.jsonl", predictions)
	var made struct {
		Patch string `json:"model_patch"`
	}
	if err := json.Unmarshal([]byte(predictions), &made); err != nil {
		t.Fatal(err)
	}
	// three commits (past, base, installed), no object that has the word, no reflog, tag, remote or
	// stash
	if want := "@@ -0,0 +1,5 @@\n+3\n+3\n+0\n+0\n+installed\n"; !strings.Contains(made.Patch, want) {
		t.Errorf("the agent has seen %s", made.Patch)
	}
	if out := b.fit(0, "grade", "--family", "set", "--predictions", "predictions.jsonl"); !strings.Contains(out,
		`"resolved_instances": 1`) {
		t.Error(out)
	}
}

func (b *bench) write(name, content string) {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) read(name string) string {
	b.t.Helper()
	content, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(content)
}

// fit runs fit-benchmark in this process and returns what it prints.
func (b *bench) fit(want int, args ...string) string {
	b.t.Helper()
	var out, errs bytes.Buffer
	con := &console.Console{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: b.environ, Dir: b.dir,
		Version: "test",
	}
	if code := cli.Run(b.t.Context(), append([]string{"fit-benchmark"}, args...), con); code != want {
		b.t.Fatalf("exit code %d\n%s\n%s", code, errs.String(), out.String())
	}
	return out.String()
}
