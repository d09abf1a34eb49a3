package skilltest

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFeedbackIsKeptAsTheConventionHasIt: what a person says about a case is a text under the name
// of the case's directory, and what other tools wrote beside it stays.
func TestFeedbackIsKeptAsTheConventionHasIt(t *testing.T) {
	dir := t.TempDir()
	test := Test{Cases: []Case{
		{ID: "1", Prompt: "p"}, {ID: "top months", Prompt: "p"}, {ID: "top-months", Prompt: "p"},
	}}
	path := filepath.Join(dir, feedbackFile)
	others := `{"reviews": [{"run_id": "eval-0-with_skill"}], "eval-1": "The axes have no labels.", "status": "done"}`
	if err := os.WriteFile(path, []byte(others), 0o600); err != nil {
		t.Fatal(err)
	}
	for id, text := range map[string]string{"top months": " The <b>legend</b> is missing.\n", "top-months": "Good."} {
		t.Run(id, func(t *testing.T) {
			if err := test.WriteFeedback(dir, id, text); err != nil {
				t.Fatal(err)
			}
		})
	}
	wantFeedback(t, &test, dir, map[string]string{
		"1": "The axes have no labels.", "top months": "The <b>legend</b> is missing.", "top-months": "Good.",
	})
	if err := test.WriteFeedback(dir, "1", ""); err != nil {
		t.Fatal(err)
	}
	wantFeedback(t, &test, dir, map[string]string{
		"top months": "The <b>legend</b> is missing.", "top-months": "Good.",
	})
	content, _ := os.ReadFile(path)
	for _, want := range []string{`"run_id": "eval-0-with_skill"`, `"status": "done"`, `"eval-top-months": "Good."`} {
		if !strings.Contains(string(content), want) {
			t.Errorf("%s is not in\n%s", want, content)
		}
	}
}

func wantFeedback(t *testing.T, test *Test, dir string, want map[string]string) {
	t.Helper()
	got, err := test.ReadFeedback(dir)
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("feedback is %q, %v; want %q", got, err, want)
	}
}

// TestFeedbackThatCannotBeReadIsNotReplaced: a file that is broken, or no file, is named with what
// to do, and stays as it is.
func TestFeedbackThatCannotBeReadIsNotReplaced(t *testing.T) {
	test := Test{Cases: []Case{{ID: "1", Prompt: "p"}}}
	for name, make := range map[string]func(path string) error{
		"broken": func(path string) error { return os.WriteFile(path, []byte(`{"eval-1": `), 0o600) },
		"a list": func(path string) error { return os.WriteFile(path, []byte(`[]`), 0o600) },
		"null":   func(path string) error { return os.WriteFile(path, []byte(`null`), 0o600) },
		"large":  func(path string) error { return os.WriteFile(path, []byte(strings.Repeat(" ", 2<<20)), 0o600) },
		"a link out of the directory": func(path string) error {
			outside := filepath.Join(t.TempDir(), "outside.json")
			if err := os.WriteFile(outside, []byte(`{"eval-1": "secret"}`), 0o600); err != nil {
				return err
			}
			return os.Symlink(outside, path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, feedbackFile)
			if err := make(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			got, err := test.ReadFeedback(dir)
			if err == nil || !strings.Contains(err.Error(), "mend it, or move it away") {
				t.Errorf("read %q, %v", got, err)
			}
			if err := test.WriteFeedback(dir, "1", "Good."); err == nil {
				t.Error("it was replaced")
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Errorf("it is now %q", after)
			}
		})
	}
	dir := t.TempDir()
	for id, text := range map[string]string{"2": "no such case", "1": strings.Repeat("a", maxFeedback+1)} {
		t.Run(id, func(t *testing.T) {
			if err := test.WriteFeedback(dir, id, text); err == nil {
				t.Errorf("feedback of %d bytes on case %s was kept", len(text), id)
			}
		})
	}
	wantFeedback(t, &test, dir, map[string]string{})
}
