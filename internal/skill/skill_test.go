package skill_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/internal/skill"
)

// tree writes files below a new directory and opens it.
func tree(t *testing.T, files map[string]string) (string, *os.Root) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return dir, root
}

func TestASkillIsItsNameDescriptionAndBody(t *testing.T) {
	_, root := tree(t, map[string]string{
		"skills/b/SKILL.md": "---\r\nname: csv-tools\r\ndescription: >-\r\n  Use it for\r\n  CSV files.\r\n---\r\n\r\nRun it.\r\n",
		"skills/a/SKILL.md": "No front matter.\n",
		"skills/README.md":  "no skill",
		"skills/empty/x":    "no skill",
		"skills/c/SKILL.md": "---\nname: c\ndescription: Use it: always\n---\nBody.\n",
	})
	skills, err := skill.List(root, "skills")
	if err != nil || len(skills) != 3 {
		t.Fatalf("%+v, %v", skills, err)
	}
	bare, whole, odd := skills[0], skills[1], skills[2]
	if bare.Name != "a" || bare.Description != "" || bare.Body != "No front matter.\n" || bare.Invalid != nil {
		t.Errorf("without front matter: %+v", bare)
	}
	if whole.Name != "csv-tools" || whole.Description != "Use it for CSV files." || whole.Body != "\nRun it.\n" ||
		whole.File() != "skills/b/SKILL.md" {
		t.Errorf("with front matter: %+v", whole)
	}
	if odd.Name != "c" || odd.Description != "Use it: always" || odd.Invalid == nil ||
		!strings.Contains(odd.Invalid.Error(), "skills/c/SKILL.md:3") {
		t.Errorf("with front matter that is not YAML: %+v", odd)
	}
	if skills, err := skill.List(root, "missing"); err != nil || len(skills) != 0 {
		t.Errorf("a directory that does not exist: %v, %v", skills, err)
	}
}

func TestHostileSkillsAreNamedAndNeitherFollowedNorWaitedFor(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "SKILL.md"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, root := tree(t, map[string]string{
		"skills/good/SKILL.md":  "Good.",
		"skills/huge/SKILL.md":  strings.Repeat("x", skill.MaxFile+1),
		"skills/dir/SKILL.md/x": "a directory in the place of the file",
		"skills/fifo/x":         "",
	})
	if err := syscall.Mkfifo(filepath.Join(dir, "skills/fifo/SKILL.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"skills/out": outside, "skills/in": "good"} {
		t.Run(name, func(t *testing.T) {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		})
	}
	skills, err := skill.List(root, "skills")
	if len(skills) != 2 || skills[0].Name != "good" || skills[1].Name != "in" {
		t.Errorf("read %+v", skills)
	}
	for _, name := range []string{"skills/huge/", "skills/dir/", "skills/fifo/", "skills/out/"} {
		if err == nil || !strings.Contains(err.Error(), name+"SKILL.md") {
			t.Errorf("%v does not name %s", err, name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("---\nname: a\ndescription: b\n---\ntext"))
	f.Add([]byte("---\nname: [\n---"))
	f.Add([]byte("---\ndescription: a: b\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := skill.Parse("skills/dir", text)
		if s.Name == "" || s.Text != string(text) || len(s.Body) > len(text) {
			t.Errorf("%+v", s)
		}
	})
}
