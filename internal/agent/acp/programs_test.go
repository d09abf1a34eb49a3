package acp

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Variables such as BASH_ENV make a shell run a program, so a .env that gemini gives to its shell
// counts as one.
func TestVariablesOfTheShellAreProgramsOfGemini(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".gemini"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".gemini", ".env"), []byte("BASH_ENV=/tmp/x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, a := range Agents() {
		if a.Info().ID != "gemini" {
			continue
		}
		found, err := a.Info().Places.ProgramsIn(root)
		if err != nil || !slices.Equal(found, []string{".gemini/.env"}) {
			t.Errorf("programs of the project: %q, %v", found, err)
		}
		return
	}
	t.Error("there is no agent gemini")
}
