package agent

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// TestTheProgramsOfAProjectAreFound: every file that makes an agent run something is named, in
// whatever way it is written, and files that do not are not.
func TestTheProgramsOfAProjectAreFound(t *testing.T) {
	places := Places{Programs: []ProjectProgram{
		{Glob: ".claude/settings*.json", Keys: []string{"hooks", "apiKeyHelper"}},
		{Glob: ".claude/agents/**/*.md", Keys: []string{"hooks"}},
		{Glob: ".codex/config.toml", Keys: []string{"mcp_servers"}},
		{Glob: ".mcp.json"},
		{Glob: ".pi/extensions/*"},
	}}
	for _, tt := range []struct {
		name, path, content string
		program             bool
	}{
		{"a key", ".claude/settings.json", `{"hooks": {}}`, true},
		{"another file of the pattern", ".claude/settings.local.json", `{"apiKeyHelper":"x"}`, true},
		{"a key with a comment behind it", ".claude/settings.json", `{"hooks" /* : */ : {}}`, true},
		{"a key in numbers", ".claude/settings.json", `{"\u0068ook\u0073": {}}`, true},
		{"no key", ".claude/settings.json", `{"disableAllHooks": true, "deny": ["Read(./hooks/**)"]}`, false},
		{"front matter", ".claude/agents/a/b/c.md", "---\nname: x\nhooks:\n  Stop: []\n---\n", true},
		{"a text about it", ".claude/agents/a.md", "---\nname: x\n---\nAsk about hooks: where they are.\n", false},
		{"a table", ".codex/config.toml", "[mcp_servers.x]\ncommand = 'x'\n", true},
		{"a table with spaces", ".codex/config.toml", "[ mcp_servers . x ]\n", true},
		{"a table in quotes", ".codex/config.toml", "[\"mcp\\x5fservers\".x]\n", true},
		{"a dotted key", ".codex/config.toml", "a = 1\n  mcp_servers.x.command = 'x'\n", true},
		{"no table", ".codex/config.toml", "# mcp_servers are off\nno_mcp_servers = true\n", false},
		{"a file without keys", ".mcp.json", "", true},
		{"an extension that is a directory", ".pi/extensions/a/index.ts", "", true},
		{"a file beside", ".pi/prompts/a.md", "hooks:", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			writeProgram(t, dir, tt.path, []byte(tt.content))
			got := programsIn(t, places, dir)
			if (len(got) == 1) != tt.program || len(got) > 1 {
				t.Errorf("found %q", got)
			}
		})
	}
}

// TestWhatCannotBeLookedAtIsAProgram: a hostile tree hides nothing and stops nobody.
func TestWhatCannotBeLookedAtIsAProgram(t *testing.T) {
	places := Places{Programs: []ProjectProgram{
		{Glob: ".claude/*.json", Keys: []string{"hooks"}}, {Glob: ".many/*", Keys: []string{"hooks"}},
	}}
	outside := t.TempDir()
	writeProgram(t, outside, "settings.json", []byte(`{"hooks": {}}`))
	for name, prepare := range map[string]func(dir string) (want string, err error){
		"a link out of the directory": func(dir string) (string, error) {
			writeProgram(t, dir, ".claude/x", nil)
			target := filepath.Join(outside, "settings.json")
			return ".claude/a.json", os.Symlink(target, filepath.Join(dir, ".claude/a.json"))
		},
		"a directory that is a link out": func(dir string) (string, error) {
			return ".claude", os.Symlink(outside, filepath.Join(dir, ".claude"))
		},
		"a link within": func(dir string) (string, error) {
			writeProgram(t, dir, "x/a.json", []byte(`{"hooks":1}`))
			return ".claude/a.json", os.Symlink("x", filepath.Join(dir, ".claude"))
		},
		"a link to itself": func(dir string) (string, error) {
			return ".claude", os.Symlink(".claude", filepath.Join(dir, ".claude"))
		},
		"a link to nothing": func(dir string) (string, error) {
			return "", os.Symlink("nothing", filepath.Join(dir, ".claude"))
		},
		"a pipe": func(dir string) (string, error) {
			writeProgram(t, dir, ".claude/x", nil)
			return ".claude/a.json", syscall.Mkfifo(filepath.Join(dir, ".claude/a.json"), 0o600)
		},
		"a huge file": func(dir string) (string, error) {
			writeProgram(t, dir, ".claude/a.json", bytes.Repeat([]byte(" "), maxProgramFile+1))
			return ".claude/a.json", nil
		},
		"a directory with the name of a file": func(dir string) (string, error) {
			return "", os.MkdirAll(filepath.Join(dir, ".claude/a.json"), 0o700)
		},
		"more entries than anybody has": func(dir string) (string, error) {
			for i := range maxProgramEntries + 1 {
				writeProgram(t, dir, fmt.Sprintf(".many/%d", i), nil)
			}
			return ".many", nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			want, err := prepare(dir)
			if err != nil {
				t.Fatal(err)
			}
			got := programsIn(t, places, dir)
			if (want == "") != (len(got) == 0) || (want != "" && !slices.Contains(got, want)) {
				t.Errorf("found %q, want %q", got, want)
			}
		})
	}
}

func programsIn(t *testing.T, places Places, dir string) []string {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	found, err := places.ProgramsIn(root)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func writeProgram(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
