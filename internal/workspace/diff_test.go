package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/git"
	"github.com/fit-eval/fit/internal/patch"
	"github.com/fit-eval/fit/internal/testenv"
)

// numberedLines is a text whose lines all differ.
func numberedLines(count int) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, "line %d of a long text\n", i)
	}
	return b.String()
}

// moves is a workspace whose base has two long files, one of them in a directory.
func moves(t *testing.T) *Workspace {
	t.Helper()
	fam, one := family(t, map[string]string{
		"workdir/pkg/old.txt": numberedLines(300), "workdir/near.txt": numberedLines(40),
	})
	stored := t.TempDir()
	w, err := Adopt(t.Context(), Config{Root: t.TempDir(), Name: "moves", Family: fam, Task: one}, stored)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func changesOf(d *Diff) []string {
	var list []string
	for _, file := range patch.Parse(d.Patch).Files {
		added, removed := file.Counts()
		list = append(list, fmt.Sprintf("%s %s %s +%d -%d", file.Status, file.Old, file.New, added, removed))
	}
	return list
}

// A diff says what was done: a file that moved was not written anew, what git and the tools of a
// language keep is not text that somebody wrote, and a long text is counted line by line.
func TestADiffSaysWhatWasDone(t *testing.T) {
	testenv.NeedTool(t, "git")
	w := moves(t)
	write(t, w.Dir, map[string]string{
		"pkg/new.txt":       numberedLines(300),
		"sub/near.txt":      numberedLines(41),
		"vendored/.git/x":   "[core]\n",
		"vendored/lib.txt":  "text\n",
		"long.txt":          numberedLines(120_000),
		"__pycache__/a.pyc": strings.Repeat("text\n", maxPatch/5),
	})
	d, err := w.Diff(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"added  long.txt +120000 -0",
		"renamed pkg/old.txt pkg/new.txt +0 -0",
		"renamed near.txt sub/near.txt +1 -0",
		"added  vendored/lib.txt +1 -0",
	}
	if diff := cmp.Diff(want, changesOf(d)); diff != "" {
		t.Error(diff)
	}
	if !d.Truncated || !strings.HasSuffix(string(d.Patch), patch.CutNote+"\n") {
		t.Error("what did not fit is not named")
	}
	dest, err := w.Copy(t.Context(), CopyConfig{FromBase: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := git.Run(t.Context(), git.Command{
		Dir: dest.Dir, Args: []string{"apply", "--whitespace=nowarn", "-"},
		Stdin: strings.NewReader(string(d.Patch)),
	}); err != nil {
		t.Fatal(err)
	}
	moved, err := os.ReadFile(filepath.Join(dest.Dir, "sub/near.txt"))
	if _, gone := os.Stat(filepath.Join(dest.Dir, "near.txt")); err != nil || string(moved) != numberedLines(41) ||
		!os.IsNotExist(gone) {
		t.Errorf("the moved file: %v, %v, %q", err, gone, moved)
	}
}
