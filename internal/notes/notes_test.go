package notes

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fit-eval/fit/ledger"
)

func newKey(t *testing.T) *ledger.SigningKey {
	t.Helper()
	key, err := ledger.CreateKey(filepath.Join(t.TempDir(), "ledger.key"))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func add(t *testing.T, dir string, n Note, key *ledger.SigningKey) Note {
	t.Helper()
	n.By = "ada"
	added, err := Add(dir, n, key)
	if err != nil {
		t.Fatal(err)
	}
	return added
}

func read(t *testing.T, dir string) []Note {
	t.Helper()
	found, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func about(text string, tags ...string) Note {
	return Note{Task: "even", Arm: "after", Text: text, Tags: tags}
}

// A reader can tell who signed a note, and that somebody changed it since.
func TestANoteSaysWhoseItIs(t *testing.T) {
	dir, key := t.TempDir(), newKey(t)
	add(t, dir, about("lucky", "to-read", "flaky", "flaky"), key)
	add(t, dir, about("by nobody"), nil)
	found := read(t, dir)
	if got := strings.Join(found[0].Tags, " "); got != "flaky to-read" {
		t.Errorf("the tags are %s", got)
	}
	for reader, want := range map[*ledger.SigningKey]Seal{key: Own, newKey(t): Foreign, nil: Foreign} {
		if got := SealOf(&found[0], reader); got != want {
			t.Errorf("the note is %s, want %s", got, want)
		}
	}
	if got := SealOf(&found[1], key); got != Unsigned {
		t.Errorf("a note without a key is %s", got)
	}
	for what, change := range map[string]func(*Note){
		"text":      func(n *Note) { n.Text = "proven" },
		"author":    func(n *Note) { n.By = "grace" },
		"cell":      func(n *Note) { n.Run = 1 },
		"result":    func(n *Note) { n.Record = "another" },
		"signature": func(n *Note) { n.Signature = "" },
		"key":       func(n *Note) { n.Key = newKey(t).ID() },
	} {
		t.Run(what, func(t *testing.T) {
			changed := found[0]
			change(&changed)
			if got := SealOf(&changed, key); got != Altered {
				t.Errorf("with another %s the note is %s", what, got)
			}
		})
	}
}

// What was removed is not read, and stays in the file; a removal that somebody altered removes
// nothing.
func TestRemovedNotesStayInTheFile(t *testing.T) {
	dir, key := t.TempDir(), newKey(t)
	first, second := add(t, dir, about("one"), key), add(t, dir, about("two"), key)
	add(t, dir, Note{Removes: first.ID}, key)
	path := filepath.Join(dir, File)
	content, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(content), `"one"`) {
		t.Errorf("%s %v", content, err)
	}
	forged := strings.Replace(string(content), `"removes":"`+first.ID, `"removes":"`+second.ID, 1)
	if err := os.WriteFile(path, []byte(forged), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := read(t, dir); len(found) != 2 {
		t.Errorf("after the removal was altered there are %v", found)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if found := read(t, dir); len(found) != 1 || found[0].Text != "two" {
		t.Errorf("after one was removed there are %v", found)
	}
}

// A line that was cut, and lines that are no notes, cost no other note.
func TestTornNotes(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, File), []byte("[1]\n\n{\"id\":\"x\",\"te"), 0o600); err != nil {
		t.Fatal(err)
	}
	add(t, dir, about("after the cut"), nil)
	if found := read(t, dir); len(found) != 1 || found[0].Text != "after the cut" {
		t.Errorf("%v", found)
	}
}

// Notes that several write at the same time are all there.
func TestManyAuthors(t *testing.T) {
	dir := t.TempDir()
	var writing sync.WaitGroup
	for range 20 {
		writing.Go(func() {
			if _, err := Add(dir, about("x"), nil); err != nil {
				t.Error(err)
			}
		})
	}
	writing.Wait()
	if found := read(t, dir); len(found) != 20 {
		t.Errorf("there are %d", len(found))
	}
}

// A directory from a stranger cannot have notes written or read elsewhere.
func TestNotesAreAFileOfTheDirectory(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "profile")
	if err := os.WriteFile(outside, []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, make := range map[string]func(path string) error{
		"a link outside": func(path string) error { return os.Symlink(outside, path) },
		"a link inside":  func(path string) error { return os.Symlink("results.jsonl", path) },
		"a directory":    func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "results.jsonl"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := make(filepath.Join(dir, File)); err != nil {
				t.Fatal(err)
			}
			if _, err := Add(dir, about("x"), nil); err == nil {
				t.Error("a note was added")
			}
			if found, err := Read(dir); err == nil {
				t.Errorf("read %v", found)
			}
			for _, path := range []string{outside, filepath.Join(dir, "results.jsonl")} {
				if content, _ := os.ReadFile(path); strings.Contains(string(content), "even") {
					t.Errorf("%s has the note", path)
				}
			}
		})
	}
}

// What is no note is refused in words.
func TestNotesAreChecked(t *testing.T) {
	for want, n := range map[string]Note{
		"name the cell":       {Text: "x"},
		"a text or a tag":     {Task: "t", Arm: "a", Text: " "},
		"tag \"two words\"":   {Task: "t", Arm: "a", Tags: []string{"two words"}},
		"more than 20 tags":   {Task: "t", Arm: "a", Tags: make([]string, 21)},
		"10000 characters":    {Task: "t", Arm: "a", Text: strings.Repeat("x", 10_001)},
		"a name and":          {View: "tab=cost"},
		"has a name and the ": {Task: "t", Arm: "a", View: "tab=cost", Text: "x"},
	} {
		t.Run(want, func(t *testing.T) {
			if err := n.Check(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %s", n, err, want)
			}
		})
	}
}
