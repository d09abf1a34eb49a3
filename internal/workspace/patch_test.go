package workspace

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func FuzzPatch(f *testing.F) {
	f.Add("a.txt", "one\ntwo\n", "one\n2\n", true, true)
	f.Add("b c", "", "no newline", false, true)
	f.Add("\x01\"\\ü", "x\r\n", "", true, false)
	f.Add("n", "@@ -1 +1 @@\n--- a\n", "diff --git a/x b/x\n", true, true)
	gitPath, err := exec.LookPath("git")
	f.Fuzz(func(t *testing.T, name, before, after string, hadBefore, hasAfter bool) {
		if strings.ContainsRune(before+after, 0) || !hadBefore && !hasAfter || hadBefore && hasAfter &&
			before == after {
			t.Skip()
		}
		side := func(content string, there bool) patchSide {
			if !there {
				return patchSide{}
			}
			return patchSide{exists: true, mode: "100644", content: []byte(content)}
		}
		patch := filePatch(name, name, side(before, hadBefore), side(after, hasAfter))
		header, _, _ := strings.Cut(string(patch), "\n@@")
		for i := range len(header) {
			if c := header[i]; c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
				t.Fatalf("the name is not quoted: %q", header)
			}
		}
		if err != nil || !usableName(name) {
			return
		}
		dir := t.TempDir()
		file := filepath.Join(dir, name)
		if hadBefore {
			if os.WriteFile(file, []byte(before), 0o644) != nil {
				t.Skip()
			}
		}
		cmd := exec.Command(gitPath, "apply", "--whitespace=nowarn", "-")
		cmd.Dir, cmd.Stdin = dir, bytes.NewReader(patch)
		cmd.Env = []string{
			"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
			"GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir),
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git does not take it: %s\n%q", out, patch)
		}
		got, err := os.ReadFile(file)
		if hasAfter && (err != nil || string(got) != after) || !hasAfter && err == nil {
			t.Fatalf("git made %q (%v) of %q", got, err, patch)
		}
	})
}

// usableName leaves out names that git itself refuses.
func usableName(name string) bool {
	lower := strings.ToLower(name)
	return name != "" && len(name) < 200 && !strings.ContainsAny(name, "/\x00") && name != "." && name != ".." &&
		!strings.HasPrefix(lower, ".git") && !strings.HasPrefix(lower, "git~")
}
