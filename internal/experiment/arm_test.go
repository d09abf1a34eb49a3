package experiment

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/document"
)

var update = flag.Bool("update", false, "write the schema to docs/schema")

// writeFiles makes files below a directory.
func writeFiles(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func sealed(t *testing.T, arm Arm) string {
	t.Helper()
	brings, err := arm.Contents()
	if err != nil {
		t.Fatal(err)
	}
	if err := arm.Seal(brings); err != nil {
		t.Fatal(err)
	}
	return arm.Hash
}

func TestAnArmsHashIsOfWhatMatters(t *testing.T) {
	skills := func(text string, mode os.FileMode) string {
		dir := t.TempDir()
		writeFiles(t, dir, map[string]string{".claude/skills/x/SKILL.md": text})
		if err := os.Chmod(filepath.Join(dir, ".claude/skills/x/SKILL.md"), mode); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	base := Arm{Name: "a", Agent: "builtin", ModelURL: "http://127.0.0.1:4000/s/x", Skills: skills("v1", 0o644)}
	same := []Arm{
		{Name: "b", Agent: "builtin", ModelURL: "http://127.0.0.1:4000/s/x", Skills: base.Skills},
		{Name: "a", Agent: "builtin", ModelURL: "http://127.0.0.1:5000/s/x", Skills: base.Skills},
		{Name: "a", Agent: "builtin", ModelURL: "https://gateway.example/s/y", Skills: base.Skills},
		{Name: "a", Agent: "builtin", ModelURL: "http://127.0.0.1:4000/s/x", Skills: skills("v1", 0o644)},
	}
	different := []Arm{
		{Name: "a", Agent: "codex", ModelURL: base.ModelURL, Skills: base.Skills},
		{Name: "a", Agent: "builtin", Model: "another", ModelURL: base.ModelURL, Skills: base.Skills},
		{Name: "a", Agent: "builtin", ModelURL: base.ModelURL, Skills: skills("v2", 0o644)},
		{Name: "a", Agent: "builtin", ModelURL: base.ModelURL, Skills: skills("v1", 0o755)},
		{Name: "a", Agent: "builtin", ModelURL: base.ModelURL, Skills: base.Skills, Env: map[string]string{"A": "1"}},
		{Name: "a", Agent: "builtin", ModelURL: base.ModelURL, Skills: base.Skills, Prompt: "Be brief."},
	}
	for i, arm := range same {
		if sealed(t, arm) != sealed(t, base) {
			t.Errorf("%d: what makes no difference changes the hash", i)
		}
	}
	for i, arm := range different {
		if sealed(t, arm) == sealed(t, base) {
			t.Errorf("%d: what makes a difference does not change the hash", i)
		}
	}
}

func TestMistakesInArmsAreNamed(t *testing.T) {
	for _, text := range []string{
		"", "=agent:x", "a b=agent:x", "a=agnt:x", "a=maxTurns:many", "a=env:NOVALUE",
		"a=agent",
	} {
		if arm, err := ParseArm(text, nil); err == nil {
			t.Errorf("%q is accepted: %+v", text, arm)
		}
	}
	if err := CheckArms([]Arm{{Name: "a"}, {Name: "a"}}); err == nil {
		t.Error("two arms of one name are accepted")
	}
	if err := CheckArms([]Arm{{Name: "a", LeadModel: "x"}}); err == nil {
		t.Error("a model of a lead without a lead is accepted")
	}
}

func TestArmsFile(t *testing.T) {
	dir := t.TempDir()
	write := func(content string) string {
		writeFiles(t, dir, map[string]string{"arms.yaml": content})
		return filepath.Join(dir, "arms.yaml")
	}
	arms, err := LoadArms(write("arms:\n  - name: before\n    agent: builtin\n  - name: after\n    agent: builtin\n    skills: new\n    maxTurns: 7\n    env:\n      MODE: x\n"))
	if err != nil || len(arms) != 2 || arms[1].Skills != filepath.Join(dir, "new") || arms[1].MaxTurns != 7 ||
		arms[1].Env["MODE"] != "x" {
		t.Errorf("%+v %v", arms, err)
	}
	for content, place := range map[string]string{
		"arms:\n  - name: a\n    modell: x\n":          ":3:5:",
		"arms:\n  - agent: builtin\n":                  ":2:5:",
		"arms:\n  - name: a\n    maxTurns: -1\n":       ":3:15:",
		"arms:\n  - name: a\n  - name: a\n":            ":3:11:",
		"arms:\n  - name: 'a b'\n":                     ":2:11:",
		"arms:\n  - name: a\n    auth: magic\n":        ":3:11:",
		"arms: [\n":                                    "arms.yaml:",
		"arms:\n  - name: a\n    allowedTools: Bash\n": ":3:19:",
	} {
		t.Run(content, func(t *testing.T) {
			if _, err := LoadArms(write(content)); err == nil || !strings.Contains(err.Error(), place) {
				t.Errorf("%q: %v, want a place %s", content, err, place)
			}
		})
	}
}

// The published schema is the one that is made from the structs.
func TestArmsSchemaIsCurrent(t *testing.T) {
	want, err := document.SchemaOf("arms.yaml", armsFile{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := document.CompileSchema("arms", want); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("..", "..", "docs", "schema", "arms.schema.json")
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != string(want) {
		t.Errorf("%s differs from what the structs say (%v); go test ./experiment -update writes it anew", path, err)
	}
}
