package workspace

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// apply carries out the edits that diffLines found.
func apply(a, b [][]byte, edits []edit) []byte {
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(out, bytes.Join(a[at:e.a0], nil)...)
		out = append(out, bytes.Join(b[e.b0:e.b1], nil)...)
		at = e.a1
	}
	return append(out, bytes.Join(a[at:], nil)...)
}

func TestEditsLeadFromOneTextToTheOther(t *testing.T) {
	line := rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n", "d", "long line\r\n"})
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(line, 0, 30).Draw(t, "lines"),
			"")
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := splitLines([]byte(text.Draw(t, "a"))), splitLines([]byte(text.Draw(t, "b")))
		edits := diffLines(a, b)
		if got := apply(a, b, edits); !bytes.Equal(got, bytes.Join(b, nil)) {
			t.Fatalf("edits %v give %q", edits, got)
		}
		changed := 0
		for _, e := range edits {
			changed += e.a1 - e.a0 + e.b1 - e.b0
		}
		if want := len(a) + len(b) - 2*common(a, b); changed != want {
			t.Fatalf("%d lines are changed, the shortest way is %d", changed, want)
		}
	})
}

// common is the length of the longest common subsequence, by the plain method.
func common(a, b [][]byte) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if bytes.Equal(x, y) {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

func TestFilesWithNothingInCommonAreReplaced(t *testing.T) {
	a, b := splitLines([]byte(strings.Repeat("x\n", 3000))), splitLines([]byte(strings.Repeat("y\n", 3000)))
	if got := apply(a, b, diffLines(a, b)); !bytes.Equal(got, bytes.Join(b, nil)) {
		t.Error("the replacement is wrong")
	}
}

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
			return patchSide{there: true, mode: "100644", content: []byte(content)}
		}
		patch, _, _ := filePatch(name, side(before, hadBefore), side(after, hasAfter))
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
