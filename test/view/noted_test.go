package view

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ownDemo is a copy of the demo that a test may write to, and its server. Keys of users are made
// for the test.
func ownDemo(t *testing.T, names ...string) (top, address string) {
	t.Helper()
	top = t.TempDir()
	for _, name := range names {
		if err := os.CopyFS(filepath.Join(top, name), os.DirFS(demoDirectory(t))); err != nil {
			t.Fatal(err)
		}
	}
	return top, serve(t, top)
}

// TestANoteIsKeptWithItsCell: who reads a run says what is worth knowing, under their name, and
// others find it on the page, at the terminal and in a file.
func TestANoteIsKeptWithItsCell(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	top, address := ownDemo(t, "skills")
	const text = "<img src=x onerror=alert(1)> lucky: no test has a loop"
	path := filepath.Join(t.TempDir(), "cell.html")
	type written struct{ Said, Name string }
	got := decode[written](t, b.run(t, "note", map[string]any{
		"url": address, "text": text, "path": path, "kept": true,
	}))
	for _, want := range []string{text, "signed by you", "flaky"} {
		if !strings.Contains(got.Said, want) {
			t.Errorf("the note reads %q, without %q", got.Said, want)
		}
	}
	if got.Name != "skills-even-after-0.html" {
		t.Errorf("the file is called %s", got.Name)
	}
	said := decode[string](t, b.run(t, "cellFile", map[string]any{"path": path}))
	for _, want := range []string{text, "signed with the key", "even.sh"} {
		if !strings.Contains(said, want) {
			t.Errorf("the file does not say %q: %s", want, said)
		}
	}
	out, err := fitCommand(t, "benchmark", "list", filepath.Join(top, "skills"), "--notes").Output()
	if err != nil || !strings.Contains(string(out), text) || !strings.Contains(string(out), "signed by you") {
		t.Errorf("list --notes: %s %v", out, err)
	}
	whole := exported(t, "benchmark", "show", filepath.Join(top, "skills"), "even/after/0", "--format", "html")
	if said := decode[string](t, b.run(t, "cellFile", map[string]any{"path": whole})); !strings.Contains(said, text) {
		t.Errorf("show --format html does not have the note: %s", said)
	}
	b.run(t, "note", map[string]any{"url": serve(t, demoCopy(t)), "text": "not for long", "path": path})
}

func demoCopy(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "skills")
	if err := os.CopyFS(dir, os.DirFS(demoDirectory(t))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestColumnsAndSavedViews: what a reader has made of a page is in its address, and can be kept.
func TestColumnsAndSavedViews(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	_, address := ownDemo(t, "skills")
	b.run(t, "columns", map[string]any{"url": address})
}

// TestTwoExperimentsOfTheListAreCompared: with the numbers that compare prints for the same two
// arms.
func TestTwoExperimentsOfTheListAreCompared(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	top, address := ownDemo(t, "june", "july")
	type page struct {
		Sentence, Claim, Overall string
		Crumbs                   []string
	}
	got := decode[page](t, b.run(t, "compareTwo", map[string]any{
		"url": address, "names": []string{"june", "july"}, "arms": []string{"before", "after"},
	}))
	sides := []string{filepath.Join(top, "june") + ":before", filepath.Join(top, "july") + ":after"}
	var want comparison
	answerOf(t, &want, "benchmark", "compare", sides[0], sides[1], "--format", "json")
	if !strings.HasPrefix(got.Sentence, "Observed (not one experiment)") ||
		!strings.HasPrefix(want.Decision.Sentence, "Observed (not one experiment)") {
		t.Errorf("the page says %q, compare %q", got.Sentence, want.Decision.Sentence)
	}
	if points := points(want.Decision.Effect, 1); !strings.Contains(got.Overall, points) ||
		!strings.Contains(got.Sentence, points) {
		t.Errorf("the difference %s is not in %q and %q", points, got.Sentence, got.Overall)
	}
	crumbs := strings.Join(got.Crumbs, " ")
	if !strings.Contains(crumbs, "july") || !strings.Contains(crumbs, "after") {
		t.Errorf("the last mark leads to %s", crumbs)
	}
	g := &guide{asked: askView(t, address), address: address, top: top}
	var answer struct{ Comparison json.RawMessage }
	g.read(t, "/api/experiments/"+g.id(t, "june")+":before%7C"+g.id(t, "july")+":after", &answer)
	same(t, "comparison", answer.Comparison,
		printed(t, "benchmark", "compare", sides[0], sides[1], "--format", "json"))
}
