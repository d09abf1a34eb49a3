package patch_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/git"
	"github.com/fit-eval/fit/internal/patch"
)

// TestTheFixture: added and removed lines have the numbers of their own side, and context has none
// that can be cited.
func TestTheFixture(t *testing.T) {
	p := patch.Parse([]byte("--- a/x.go\n+++ b/x.go\n@@ -10,3 +10,4 @@\n ctx\n-old\n+new1\n+new2\n ctx2\n"))
	if p.Partial || len(p.Files) != 1 || p.Files[0].Status != patch.Modified {
		t.Fatalf("%+v", p)
	}
	if diff := cmp.Diff("modified \"x.go\" \"x.go\"   false\n  -11/0 \"old\" false\n  +0/11 \"new1\" false\n"+
		"  +0/12 \"new2\" false\n", shown(p)); diff != "" {
		t.Errorf("changed lines (-want +got):\n%s", diff)
	}
}

// shown is a patch in one line per file and changed line.
func shown(p *patch.Patch) string {
	var out strings.Builder
	for i := range p.Files {
		f := &p.Files[i]
		fmt.Fprintf(&out, "%s %q %q %s %s %v\n", f.Status, f.Old, f.New, f.OldMode, f.NewMode, f.Binary)
		for _, h := range f.Hunks {
			for _, line := range h.Lines {
				if line.Op != patch.Context {
					fmt.Fprintf(&out, "  %c%d/%d %q %v\n", line.Op, line.Old, line.New, line.Text, line.NoNewline)
				}
			}
		}
	}
	if p.Partial {
		out.WriteString("partial\n")
	}
	return out.String()
}

func TestForms(t *testing.T) {
	for name, v := range map[string]struct{ diff, want string }{
		"a new file without a line break": {
			"diff --git a/n b/n\nnew file mode 100755\nindex 0..1\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n",
			"added \"\" \"n\"  100755 false\n  +0/1 \"x\" true\n",
		},
		"an empty new file": {
			"diff --git a/dir/e b/dir/e\nnew file mode 100644\nindex 0000000..e69de29\n",
			"added \"\" \"dir/e\"  100644 false\n",
		},
		"a mode": {"diff --git a/m b/m\nold mode 100644\nnew mode 100755\n", "mode \"m\" \"m\" 100644 100755 false\n"},
		"a rename with a change": {
			"diff --git a/old name b/new name\nsimilarity index 90%\nrename from old name\nrename to new name\n--- a/old name\t\n+++ b/new name\t\n@@ -1 +1 @@\n-a\n+b\n",
			"renamed \"old name\" \"new name\"   false\n  -1/0 \"a\" false\n  +0/1 \"b\" false\n",
		},
		"a copy":                         {"diff --git a/o b/c\ncopy from o\ncopy to c\n", "copied \"o\" \"c\"   false\n"},
		"a quoted name":                  {"diff --git \"a/\\303\\244 \\\"\\t\" \"b/\\303\\244 \\\"\\t\"\ndeleted file mode 100644\n", "deleted \"ä \\\"\\t\" \"\" 100644  false\n"},
		"git's binary":                   {"diff --git a/b b/b\nindex 1..2 100644\nBinary files a/b and b/b differ\n", "modified \"b\" \"b\" 100644 100644 true\n"},
		"a binary patch":                 {"diff --git a/b b/b\nindex 1..2\nGIT binary patch\nliteral 3\nKcmZ?wbhEHbWMp7uX!y@y\n\nliteral 0\nHcmV?d00001\n\n", "modified \"b\" \"b\"   true\n"},
		"our own binary":                 {"# binary file added: a b\n# binary file deleted: \"x\\ny\"\n", "added \"\" \"a b\"   true\ndeleted \"x\\ny\" \"\"   true\n"},
		"plain diff":                     {"--- a.txt\t2024-01-01\n+++ a.txt\t2024-01-02\n@@ -1,0 +2,1 @@ where\n+b\n", "modified \"a.txt\" \"a.txt\"   false\n  +0/2 \"b\" false\n"},
		"a line like a header":           {"diff --git a/s b/s\n--- a/s\n+++ b/s\n@@ -1,2 +1,2 @@\n--- comment\n+++ more\n x\n", "modified \"s\" \"s\"   false\n  -1/0 \"-- comment\" false\n  +0/1 \"++ more\" false\n"},
		"a hunk cut short":               {"--- a/s\n+++ b/s\n@@ -1,3 +1,3 @@\n-a\n", "modified \"s\" \"s\"   false\n  -1/0 \"a\" false\npartial\n"},
		"a hunk in a hunk":               {"--- a/s\n+++ b/s\n@@ -1,3 +1,3 @@\n-a\n@@ -9 +9 @@\n+z\n", "modified \"s\" \"s\"   false\n  -1/0 \"a\" false\n  +0/9 \"z\" false\npartial\n"},
		"no file":                        {"@@ -1 +1 @@\n-a\n+b\n", "partial\n"},
		"no ranges":                      {"--- a/s\n+++ b/s\n@@ x @@\n", "partial\n"},
		"an endless quote":               {"diff --git \"a/x\n", "modified \"a/x\" \"a/x\"   false\npartial\n"},
		"huge numbers":                   {"--- a/s\n+++ b/s\n@@ -99999999999,1 +1 @@\n", "partial\n"},
		"names that nothing tells apart": {"diff --git x y z\n", "modified \"x y z\" \"x y z\"   false\npartial\n"},
		"a hunk without ranges between two others": {
			"diff --git a/s b/s\n--- a/s\n+++ b/s\n@@ -1 +1 @@\n-a\n+b\n@@ -x @@\n+c\n@@ -5 +5,2 @@\n d\n+e\n",
			"modified \"s\" \"s\"   false\n  -1/0 \"a\" false\n  +0/1 \"b\" false\n  +0/6 \"e\" false\npartial\n",
		},
		"a broken file between two others": {
			"--- a/1\n+++ b/1\n@@ -1 +1 @@\n-a\n+b\ndiff --git a/2 b/2\nrename from 2\nrename to 3\n--- a/9\n+++ b/3\n@@ -1 +1 @@\n-c\n+d\n" +
				"diff --git a/3 b/3\n--- a/3\n+++ b/3\n@@ -1 +1 @@\n-e\n+f\n",
			"modified \"1\" \"1\"   false\n  -1/0 \"a\" false\n  +0/1 \"b\" false\n" +
				"modified \"a/2 b/2\" \"a/2 b/2\"   false\n  -1/0 \"c\" false\n  +0/1 \"d\" false\n" +
				"modified \"3\" \"3\"   false\n  -1/0 \"e\" false\n  +0/1 \"f\" false\npartial\n",
		},
		"a name that ends in a backslash": {
			"diff --git \"a/x\\\\\" \"b/x\\\\\"\n--- \"a/x\\\\\"\n+++ \"b/x\\\\\"\n@@ -1 +1 @@\n-a\n+b\n",
			"modified \"x\\\\\" \"x\\\\\"   false\n  -1/0 \"a\" false\n  +0/1 \"b\" false\n",
		},
		"carriage returns in headers": {
			"diff --git a/x b/x\r\n--- a/x\r\n+++ b/x\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n",
			"modified \"x\" \"x\"   false\n  -1/0 \"a\\r\" false\n  +0/1 \"b\\r\" false\n",
		},
		"nothing": {"", ""},
		"prose":   {"Hello,\nthis is no diff.\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(v.want, shown(patch.Parse([]byte(v.diff)))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		})
	}
}

// TestAgainstGit reads what git says about a repository full of odd files, and compares the sums
// with git's own.
func TestAgainstGit(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if err := git.Run(context.Background(), git.Command{Dir: dir, Args: args, Stdout: &out}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	write := func(name, content string) {
		t.Helper()
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	many := strings.Repeat("a line\n", 40)
	run("init", "-q")
	for name, content := range map[string]string{
		"plain": "a\nb\nc\n", "with blank": "x\n", "quote\"d\n": "y", "ümlaut": "z\n",
		"binary": "\x00\x01", "gone": "1\n2\n",
		"d/moved": many, "crlf": "a\r\nb\r\n", "empty": "", " b/odd": "q\n",
	} {
		write(name, content)
	}
	run("add", "-A")
	run("-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "base")
	for name, content := range map[string]string{
		"plain": "a\nB\nc\nd", "with blank": "x\n--- y\n", "quote\"d\n": "Y\n", "ümlaut": "",
		"binary": "\x00\x02", "crlf": "a\nb\r\n",
		"empty": "no more", "new": "n\n", " b/odd": "Q\n",
	} {
		write(name, content)
	}
	run("rm", "-q", "gone")
	run("mv", "d/moved", "d/elsewhere")
	write("d/elsewhere", many+"more\n")
	if err := os.Chmod(filepath.Join(dir, "plain"), 0o755); err != nil {
		t.Fatal(err)
	}
	run("add", "-A")
	for _, flags := range [][]string{{}, {"-M"}, {"--binary"}, {"-U0"}, {"--no-prefix"}} {
		args := append([]string{"diff", "--cached"}, flags...)
		p := patch.Parse([]byte(run(args...)))
		if p.Partial {
			t.Errorf("%v: %+v", flags, p)
		}
		want := strings.Split(strings.TrimRight(run("diff", "--cached", "--numstat", "-z"), "\x00"), "\x00")
		var wanted []string
		for i := 0; i < len(want); i++ {
			if strings.HasSuffix(want[i], "\t") { // a rename: two names follow
				wanted = append(wanted, want[i]+want[i+2])
				i += 2
				continue
			}
			wanted = append(wanted, want[i])
		}
		var got []string
		for i := range p.Files {
			added, removed := p.Files[i].Counts()
			sums := fmt.Sprintf("%d\t%d\t", added, removed)
			if p.Files[i].Binary {
				sums = "-\t-\t"
			}
			got = append(got, sums+p.Files[i].Path())
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("%v (-git +ours):\n%s", flags, diff)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n"))
	f.Add([]byte(strings.Repeat("@@ -1 +1 @@\n", 100)))
	f.Add([]byte("diff --git \"a/\\303\\244\" b/x y\nrename from a\nrename to b\n# binary file added: z\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := patch.Parse(data)
		lines := 0
		for i := range p.Files {
			file := &p.Files[i]
			if file.Status == "" {
				t.Fatalf("%q: a file without a status", data)
			}
			for _, h := range file.Hunks {
				old, new := h.OldStart, h.NewStart
				for _, line := range h.Lines {
					lines++
					if line.Op != patch.Plus && line.Old != old || line.Op != patch.Minus && line.New != new {
						t.Fatalf("%q: numbers that do not follow each other", data)
					}
					if line.Old > 0 {
						old++
					}
					if line.New > 0 {
						new++
					}
				}
			}
		}
		if lines > bytes.Count(data, []byte("\n"))+1 {
			t.Fatalf("%q: more lines than there are", data)
		}
	})
}
