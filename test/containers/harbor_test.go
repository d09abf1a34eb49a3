package containers

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/containertest"
	"github.com/fit-eval/fit/sandbox"
)

// harborSet copies Harbor tasks of testdata, whose Dockerfiles then build on the test's image.
func harborSet(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join("testdata", "harbor", name))); err != nil {
			t.Fatal(err)
		}
	}
	text := "images: {\"debian:bookworm-slim\": " + containertest.Image(t) + "}\n"
	if err := os.WriteFile(filepath.Join(dir, "family.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// fit runs a command in this process.
func fit(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	con := &console.Console{
		Stdin:   strings.NewReader(""),
		Stdout:  &out,
		Stderr:  &errs,
		Environ: append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, environ...),
		Dir:     t.TempDir(),
		Version: "test",
	}
	code = cli.Run(t.Context(), args, con)
	return code, out.String(), errs.String()
}

// Every fixture passes with its solution and fails untouched.
func TestLintIsTheOracleAndNullCheckOfAHarborSet(t *testing.T) {
	containertest.Engine(t)
	entries, err := os.ReadDir(filepath.Join("testdata", "harbor"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	code, out, errs := fit(t, []string{sandbox.HelperVariable + "=" + containertest.Helper(t)},
		"fit-benchmark", "lint", "--family", harborSet(t, names...))
	if code != 0 || !strings.Contains(out, "0 errors") {
		t.Errorf("exit code %d\n%s\n%s", code, errs, out)
	}
	if left := containersOf(t); left != "" {
		t.Errorf("left: %s", left)
	}
}
