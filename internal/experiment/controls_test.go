package experiment

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheControlOfAFamilyTakesNothingOfItsUser: who writes a family is not who runs it. Its control
// brings files of the family and decides neither where keys go nor what programs run.
func TestTheControlOfAFamilyTakesNothingOfItsUser(t *testing.T) {
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret.yaml")
	if err := os.WriteFile(secret, []byte("TOPSECRET\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	control := func(t *testing.T, setting string) string {
		t.Helper()
		family := t.TempDir()
		text := "effect: worse\narms:\n  - name: known\n    agent: builtin\n    " + setting + "\n"
		if strings.HasPrefix(setting, "agent:") {
			text = strings.Replace(text, "    agent: builtin\n", "", 1)
		}
		write := os.WriteFile(filepath.Join(family, controlFile), []byte(text), 0o600)
		if err := os.MkdirAll(filepath.Join(family, "more/skills"), 0o700); err != nil || write != nil {
			t.Fatal(err, write)
		}
		return family
	}
	wantRefused := func(t *testing.T, family string, named ...string) {
		t.Helper()
		arm, _, err := KnownControl(family)
		if err == nil {
			t.Fatalf("accepted: %+v", arm)
		}
		for _, text := range append(named, controlFile) {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%v does not name %q", err, text)
			}
		}
		if strings.Contains(err.Error(), "TOPSECRET") {
			t.Error(err)
		}
	}
	for setting, named := range map[string]string{
		"files: " + outside:                    outside,
		"files: ..":                            "is not in the family",
		"instructions: " + secret:              secret,
		"skills: " + outside:                   outside,
		"skills: more/skills+" + outside:       outside,
		"modelUrl: http://127.0.0.1:1":         "modelUrl",
		"auth: apikey":                         "auth",
		"env: {HTTPS_PROXY: http://127.0.0.1}": "env",
		"mcp: more/servers.json":               "mcp",
		"settings: more/settings.json":         "settings",
		"agent: cmd:/bin/true":                 "cmd:/bin/true",
		"agent: http://127.0.0.1:1":            "http://127.0.0.1:1",
		"lead: acp:/bin/true":                  "acp:/bin/true",
	} {
		t.Run(setting, func(t *testing.T) { wantRefused(t, control(t, setting), named) })
	}
	t.Run("link", func(t *testing.T) {
		family := t.TempDir()
		if err := os.Symlink(secret, filepath.Join(family, controlFile)); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, family, secret)
	})
	t.Run("link of what it names", func(t *testing.T) {
		family := control(t, "instructions: more/notes.md")
		if err := os.Symlink(secret, filepath.Join(family, "more/notes.md")); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, family, secret, "more/notes.md")
	})
	t.Run("effect", func(t *testing.T) {
		family := control(t, "prompt: Do nothing.")
		path := filepath.Join(family, controlFile)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range []string{"", "effect: unlike\n"} {
			other := strings.Replace(string(text), "effect: worse\n", declared, 1)
			if err := os.WriteFile(path, []byte(other), 0o600); err != nil {
				t.Fatal(err)
			}
			wantRefused(t, family, "effect")
		}
	})
	t.Run("inside", func(t *testing.T) {
		family := control(t, "skills: more/skills")
		arm, effect, err := KnownControl(family)
		real, _ := filepath.EvalSymlinks(family)
		if err != nil || effect != "worse" || arm == nil || arm.Skills != filepath.Join(real, "more/skills") {
			t.Errorf("%+v %v", arm, err)
		}
	})
}
