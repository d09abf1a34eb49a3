package view

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

const web = "../../internal/view/web"

// The committed bundle is what the sources give with the packages of the lock file. The build
// itself refuses a bundle over its bound.
func TestBundleIsWhatTheSourcesGive(t *testing.T) {
	t.Parallel()
	node := testenv.NeedTool(t, "node")
	if _, err := os.Stat(filepath.Join(web, "node_modules/esbuild")); err != nil {
		testenv.Missing(t, "the packages of view/web are not installed; scripts/setup does it")
	}
	built := t.TempDir()
	for _, args := range [][]string{{"node_modules/typescript/bin/tsc", "--noEmit"}, {"build.mjs", built}} {
		cmd := exec.CommandContext(t.Context(), node, args...)
		cmd.Dir = web
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("node %s: %v\n%s", args[0], err, out)
		}
	}
	files := []string{"index.html", "app.js", "app.css", "follow.js"}
	for _, dir := range []string{built, filepath.Join(web, "dist")} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) != len(files) {
			t.Errorf("%s has %d files; the application is %v", dir, len(entries), files)
		}
	}
	for _, name := range files {
		want, err := os.ReadFile(filepath.Join(built, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(web, "dist", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("view/web/dist/%s is not what the sources give; run make web and commit it", name)
		}
	}
}
