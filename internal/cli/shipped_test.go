package cli_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/testenv"
)

// TestNewFamiliesPassLint: what init makes can be run as it is, and its agents reach their
// model and nothing else, whatever the runner.
func TestNewFamiliesPassLint(t *testing.T) {
	t.Parallel()
	for language, tool := range map[string]string{
		"shell": "sh", "node": "node", "python": "python3",
		"go": "go",
	} {
		t.Run(language, func(t *testing.T) {
			testenv.NeedTool(t, tool)
			var output bytes.Buffer
			con := &console.Console{
				Stdin: strings.NewReader(""), Stdout: &output, Stderr: &output, Environ: os.Environ(),
				Dir: t.TempDir(),
			}
			for _, args := range [][]string{{"init", "--runner", language, "family"}, {"lint", "--family", "family"}} {
				if code := cli.Run(context.Background(), append([]string{"fit-benchmark"}, args...), con); code != 0 {
					t.Errorf("%v: exit %d\n%s", args, code, output.String())
				}
			}
			settings, err := os.ReadFile(filepath.Join(con.Dir, "family", "family.yaml"))
			if err != nil || !strings.Contains(string(settings), "\nnetwork: {agent: model, required: false}\n") {
				t.Errorf("agents reach more than their model (%v):\n%s", err, settings)
			}
		})
	}
}

// linted are the contents of tasks that were seen to pass lint, one line each. A task that has
// changed since is linted, and so is one of every family; "make soak" lints all.
const linted = "testdata/linted.txt"

var update = flag.Bool("update", false, "write "+linted+" after every task was linted")

// TestShippedFamiliesPassLint: the graders of what we ship fail on the untouched scaffold and pass
// on the reference solution. Those of quick-node are seen to do so by the claim that they end in.
func TestShippedFamiliesPassLint(t *testing.T) {
	known, err := os.ReadFile(linted)
	if err != nil {
		t.Fatal(err)
	}
	all := *update || os.Getenv("FIT_SOAK") != ""
	var contents strings.Builder
	for _, family := range []struct{ dir, tool string }{
		{"democli/assets/family", "sh"},
		{"../../examples/node-family", "node"},
		{"../../examples/python-family", "python3"},
		{"../../examples/go-family", "go"},
		{"../../examples/quick-shell", "sh"},
		{"../../examples/quick-python", "python3"},
		{"../../examples/quick-go", "go"},
	} {
		t.Run(filepath.Base(family.dir), func(t *testing.T) {
			testenv.NeedTool(t, family.tool)
			tasks, err := filepath.Glob(filepath.Join(family.dir, "tasks", "*"))
			if err != nil || len(tasks) == 0 {
				t.Fatalf("%v, %v", tasks, err)
			}
			args := []string{"fit-benchmark", "lint", "--repeat", "1", "--family", family.dir}
			for i, dir := range tasks {
				line := contentOf(t, dir)
				contents.WriteString(line)
				if all || i == 0 || !strings.Contains(string(known), line) {
					args = append(args, "--task", filepath.Base(dir))
				}
			}
			var stdout, stderr bytes.Buffer
			con := &console.Console{
				Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
				Environ: os.Environ(),
			}
			if code := cli.Run(context.Background(), args, con); code != 0 {
				t.Errorf("exit %d\n%s%s", code, stdout.String(), stderr.String())
			}
		})
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(linted, []byte(contents.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// contentOf is a line with the name of a task and a digest of its files and of those that it shares
// with the others of its family.
func contentOf(t *testing.T, task string) string {
	t.Helper()
	tasks := filepath.Dir(task)
	family := filepath.Dir(tasks)
	digest := sha256.New()
	err := filepath.WalkDir(family, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && filepath.Dir(name) == tasks && name != task:
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(name)
		executable := info.Mode()&0o100 != 0
		fmt.Fprintf(digest, "%s %t %d\n%s", strings.TrimPrefix(name, family), executable, len(content), content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s/%s %x\n", filepath.Base(family), filepath.Base(task), digest.Sum(nil))
}
