package view

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// The pictures of the documentation are made from the demo by make pictures.
func TestPictures(t *testing.T) {
	if os.Getenv("FIT_VIEW_PICTURES") == "" {
		t.Skip("the pictures of the documentation are drawn by make pictures (FIT_VIEW_PICTURES=1)")
	}
	b, dir := chromium(t), t.TempDir()
	cmd := fitCommand(t, "demo")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	cmd.Stdout = io.Discard
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	found, _ := filepath.Glob(filepath.Join(dir, "fit-demo-*", "results"))
	if len(found) != 1 {
		t.Fatalf("the demo left %d run directories", len(found))
	}
	// The name of the directory is on the page.
	if err := os.Rename(found[0], filepath.Join(dir, "skills-june")); err != nil {
		t.Fatal(err)
	}
	url := serve(t, filepath.Join(dir, "skills-june"))
	pages := map[string]map[string]any{
		"experiment": {"hash": "#/x/ID", "wait": "table.grid tfoot .whisker circle"},
		"cell":       {"hash": "#/x/ID/even/before/1", "wait": ".transcript .entry.assistant"},
		"versus":     {"hash": "#/versus/ID?task=even", "wait": ".column .diff .line"},
		"trace": {
			"hash": "#/x/ID/even/after/1", "wait": ".transcript .entry.assistant",
			"click": "h2 .aside a", "then": ".trace-page .entry summary",
		},
	}
	for name, args := range pages {
		for _, scheme := range []string{"light", "dark"} {
			args["url"], args["scheme"] = url, scheme
			args["path"] = filepath.Join("../../docs/pictures", name+"-"+scheme+".png")
			b.run(t, "picture", args)
		}
	}
}
