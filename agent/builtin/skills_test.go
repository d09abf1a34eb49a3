package builtin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSkillsAreNamedInTheSystemPromptAndReadWithTheTool(t *testing.T) {
	b := newBench(t, `{"scenarios":[
		{"name":"with","when":{"system":"- try-it (.claude/skills/testing/SKILL.md): Use it when you have written a script."},
		 "turns":[{"calls":[{"read":".claude/skills/testing/SKILL.md"}]},{"text":"${last_result}"}]}],
		"turns":[{"text":"I know no skill."}]}`)
	if result := b.prompt(t.Context(), New(), b.config(), "Work."); result.Text != "I know no skill." {
		t.Errorf("without a skill: %q", result.Text)
	}
	b.write(".claude/skills/testing/SKILL.md",
		"---\r\nname: try-it\r\ndescription: >-\r\n  Use it when you have\r\n  written a script.\r\nallowed-tools: [Bash]\r\n---\r\nRun it once.\r\n")
	if result := b.prompt(t.Context(), New(), b.config(), "Work."); !strings.Contains(result.Text, "Run it once.") {
		t.Errorf("with a skill: %q", result.Text)
	}
}

func TestSkillsThatCannotBeReadAreLeftOut(t *testing.T) {
	b := newBench(t, `{"turns":[{"text":"x"}]}`)
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.MkdirAll(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "SKILL.md"), []byte("---\nname: secret\n---\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.write(".claude/skills/bare/SKILL.md", "No front matter.")
	b.write(".claude/skills/broken/SKILL.md", "---\nname: [\n---\n")
	b.write(".claude/skills/long/SKILL.md", "---\nname: long\ndescription: "+strings.Repeat("ä", 5000)+"\n---\n")
	b.write(".claude/skills/no-file/README.md", "x")
	b.write(".claude/skills/dir/SKILL.md/x", "a directory in the place of the file")
	if err := os.Symlink(outside, filepath.Join(b.dir, ".claude/skills/escape")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var names []string
	for _, s := range findSkills(root) {
		names = append(names, s.name)
		if len(s.description) > maxSkillDescription+4 {
			t.Errorf("%s: a description of %d bytes", s.name, len(s.description))
		}
	}
	if got := strings.Join(names, " "); got != "bare broken long" {
		t.Errorf("found %s", got)
	}
}
