package grade_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cheattest"
	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/testenv"
)

// readsItself looks for the numbers of the records in the program that it is.
const readsItself = `package sum

import (
	"fmt"
	"os"
	"path/filepath"
)

func init() {
	for _, name := range []string{os.Args[0], "/proc/self/exe", "/proc/self/mem"} {
		file, err := os.Open(name)
		if err == nil {
			_, err = file.Read(make([]byte, 16))
		}
		if err == nil || name == "/proc/self/mem" && file != nil {
			fmt.Fprintln(os.Stderr, "can read", name)
		}
	}
	filepath.Walk(filepath.Dir(filepath.Dir(os.Args[0])), func(path string, info os.FileInfo, err error) error {
		if file, err := os.Open(path); err == nil && info.Mode().IsRegular() {
			if _, err := file.Read(make([]byte, 16)); err == nil {
				fmt.Fprintln(os.Stderr, "can read", path)
			}
		}
		return nil
	})
	fmt.Fprintln(os.Stderr, "looked")
	os.Exit(0)
}
`

// A hidden test that records a mistake and goes on, as many do.
var goesOn = files{"tests/sum/add_test.go": `package sum

import "testing"

var cases = map[[2]int]int{{2, 3}: 5}

func TestAdd(t *testing.T) {
	for c, want := range cases {
		if got := Add(c[0], c[1]); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
}
`}

// Code under test in Go can neither name nor read what the hidden tests are made of.
func TestGoAgentsCannotReachTheHiddenTests(t *testing.T) {
	all := goBench(t, goCheck(goesOn))
	library := cheattest.All(t, "go", map[string]string{
		"file": "sum/sum.go", "dir": "sum", "package": "sum", "module": "example.com/sum",
		"hidden": "add_test.go", "test": "TestAdd", "function": "func Add(a, b int) int", "zero": "0",
		"wrong": "func Add(a, b int) int { return 0 }",
	})
	for name, reason := range map[string]string{
		"embedded-tests": "sum embeds the hidden file", "embedded-everything": "sum embeds the hidden file",
		"embedded-by-name": "sum embeds the hidden file", "embedded-from-above": "sum embeds the hidden file",
		"tests-called": "undefined: TestAdd", "test-rewound": "undefined: TestAdd",
		"test-linked": "links to a name of this module", "list-linked": "links to a name",
		"test-linked-behind-code": "misplaced", "test-in-a-test": "want 5", "generated": "want 5",
		"assembler": "", "object-file": "", "runner-linked": "",
		"sources-by-caller": "did not pass", "library-replaced": "want 5", "init-of-a-test": "want 5",
		"build-constraints": "did not pass", "plugin": "did not pass", "cgo": "want 5",
		"names-of-the-language": "sum declares false,",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := all.another(t).agent(library[name].Files)
			b.want(grade.VerdictFail, reason)
		})
	}
	byName := library["embedded-by-name"].Files["sum/evil.go"]
	for name, test := range map[string]struct {
		agent  files
		reason string
	}{
		"embeds what it must": {
			files{"sum/evil.go": strings.ReplaceAll(byName, "add_test.go", "sum.go")}, "did not pass",
		},
		"uses the cases of a test": {
			files{"sum/sum.go": "package sum\n\nfunc Add(a, b int) int { return cases[[2]int{a, b}] }\n"},
			"undefined: cases",
		},
		"an old version of the language": {
			files{"go.mod": "module example.com/sum\n\ngo 1.20\n"}, "go.mod lowers the version of the language",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all.another(t).agent(test.agent).want(grade.VerdictFail, test.reason)
		})
	}
}

// In a sandbox, code under test in Go can read neither the program that it is compiled into nor
// what that was compiled from.
func TestGoCodeCannotReadTheProgramOfItsTests(t *testing.T) {
	b := goBench(t, goCheck(goesOn)).agent(files{"sum/evil.go": readsItself})
	if b.ws.Isolation != "bwrap" {
		testenv.Missing(t, "isolation with bubblewrap")
	}
	b.want(grade.VerdictFail, "did not pass")
	said, err := os.ReadFile(filepath.Join(b.artifacts, "tests.add.stderr.log"))
	if err != nil || strings.Contains(string(said), "can read") || !strings.Contains(string(said), "looked") {
		t.Errorf("the code under test said %s, %v", said, err)
	}
}

// Work that embeds files of its own is not hindered.
func TestGoWorkMayEmbedItsOwnFiles(t *testing.T) {
	goBench(t, goCheck(goesOn)).agent(files{
		"sum/sum.go":       goRight,
		"sum/own.go":       "package sum\n\nimport \"embed\"\n\n//go:embed *.txt data\nvar Own embed.FS\n",
		"sum/own.txt":      "x",
		"sum/data/own.txt": "x",
	}).want(grade.VerdictPass, "")
}

// Tests of the same package read names of the language as the package declares them.
func TestGoWorkDoesNotRedefineTheLanguageOfItsTests(t *testing.T) {
	b := goBench(t, goCheck(files{
		"tests/sum/add_test.go": `package sum

import "testing"

func TestOdd(t *testing.T) {
	if Odd(3) != true || Odd(2) != false || max(1, 2) != 2 {
		t.Fail()
	}
}
`,
		"solution/sum/sum.go": "package sum\n\nfunc Odd(n int) bool { return n%2 == 1 }\n",
	}))
	b.agent(files{"sum/sum.go": "package sum\n\nconst false = true\n\nfunc Odd(int) bool { return true }\n"}).
		want(grade.VerdictFail, "sum declares false, which its tests use")
	b.another(t).agent(files{
		"sum/sum.go": "package sum\n\nfunc len() bool { return false }\n\nfunc Odd(n int) bool { return n%2 == 1 }\n",
	}).want(grade.VerdictPass, "")
	// What the reference declares is the task's.
	own := "package sum\n\nfunc max(a, b int) int { return b }\n\nfunc Odd(n int) bool { return n%2 == 1 }\n"
	b = goBench(t, goCheck(files{
		"tests/sum/add_test.go": "package sum\n\nimport \"testing\"\n\nfunc TestMax(t *testing.T) {\n\tif max(1, 2) != 2 {\n\t\tt.Fail()\n\t}\n}\n",
		"solution/sum/sum.go":   own,
	}))
	b.agent(files{"sum/sum.go": own}).want(grade.VerdictPass, "")
}
