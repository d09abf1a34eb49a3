package grade_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/testenv"
)

// embedTheTests is a package that has every file of its directory in itself, and prints the records
// of the tests that it finds there.
const embedTheTests = `package sum

import (
	"embed"
	"fmt"
	"os"
	"regexp"
)

//go:embed PATTERN
var all embed.FS

func init() {
	files, _ := all.ReadDir(".")
	for _, file := range files {
		source, _ := all.ReadFile(file.Name())
		for _, found := range regexp.MustCompile("\"(Test[A-Za-z]+)\", 0x([0-9a-f]+), 0x([0-9a-f]+)").FindAllSubmatch(source, -1) {
			fmt.Printf("\n\x1efit {\"status\":\"pass\",\"name\":%q,\"pad\":\"%s%s\"}\n", found[1], found[2], found[3])
		}
	}
	os.Exit(0)
}
`

// rewindTheTests runs a hidden test itself, keeps the state that the test has before it fails, and
// puts it back when it has.
const rewindTheTests = `package sum

import (
	"os"
	"testing"
)

var state *testing.T
var before testing.T

func Add(a, b int) int {
	if state != nil {
		before = *state
	}
	return 0
}

func init() {
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{
		{"TestAdd", func(t *testing.T) {
			state = t
			TESTADD(t)
			*t = before
		}},
		{"TestEnd", func(t *testing.T) { os.Exit(0) }},
	}, nil, nil)
}
`

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
	embed := func(pattern string) files {
		return files{"sum/evil.go": strings.Replace(embedTheTests, "PATTERN", pattern, 1)}
	}
	all := goBench(t, goCheck(goesOn))
	for name, test := range map[string]struct {
		agent  files
		reason string
	}{
		"embeds test files":   {embed("*_test.go"), "sum embeds the hidden file"},
		"embeds everything":   {embed("*"), "sum embeds the hidden file"},
		"embeds one by name":  {embed("add_test.go"), "sum embeds the hidden file"},
		"embeds what it must": {embed("sum.go"), "did not pass"},
		"embeds from above": {files{
			"above.go":   "package above\n\nimport \"embed\"\n\n//go:embed all:sum\nvar All embed.FS\n",
			"sum/use.go": "package sum\n\nimport above \"example.com/sum\"\n\nvar _ = above.All\n",
		}, "example.com/sum embeds the hidden file"},
		"calls a test": {
			files{"sum/sum.go": strings.Replace(rewindTheTests, "TESTADD", "TestAdd", 1)}, "undefined: TestAdd",
		},
		"uses the cases of a test": {
			files{"sum/sum.go": "package sum\n\nfunc Add(a, b int) int { return cases[[2]int{a, b}] }\n"},
			"undefined: cases",
		},
		"links to a test": {files{
			"sum/sum.go": strings.NewReplacer("TESTADD", "link.Add", "\"testing\"", "\"testing\"\n\n\t\"example.com/sum/link\"").
				Replace(rewindTheTests),
			"link/link.go": "package link\n\nimport (\n\t\"testing\"\n\t_ \"unsafe\"\n)\n\n//go:linkname Add example.com/sum/sum.TestAdd\nfunc Add(t *testing.T)\n",
		}, "links to a name of this module"},
		"links to the list of tests": {files{
			"sum/sum.go": "package sum\n\nimport (\n\t\"testing\"\n\t_ \"unsafe\"\n)\n\n//go:linkname tests main.tests\nvar tests []testing.InternalTest\n\n" +
				"func init() {\n\tf := tests[0].F\n\ttests[0].F = func(t *testing.T) {\n\t\tbefore := *t\n\t\tgo func() {\n\t\t\tfor {\n\t\t\t\t*t = before\n\t\t\t}\n\t\t}()\n\t\tf(t)\n\t}\n}\n\nfunc Add(a, b int) int { return 0 }\n",
		}, "links to a name"},
		"links behind code": {files{
			"sum/sum.go": "package sum\n\nimport (\n\t\"testing\"\n\t_ \"unsafe\"\n)\n\nvar one = 1 //go:linkname Test example.com/sum/sum.TestAdd\nfunc Test(*testing.T)\n\n" +
				"func Add(a, b int) int { return 0 }\n",
		}, "misplaced"},
		"names a test in a test": {files{
			"sum/own_test.go": "package sum\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(*testing.M) { TestAdd(nil); os.Exit(0) }\n",
		}, "want 5"},
		"assembler": {files{
			"sum/sum.go": "package sum\n\nfunc Add(a, b int) int\n",
			"sum/sum.s":  "#include \"add_test.go\"\nTEXT ·Add(SB),4,$0-24\n\tMOVQ $5, ret+16(FP)\n\tRET\n",
		}, "missing function body"},
		"an old version of the language": {
			files{"go.mod": "module example.com/sum\n\ngo 1.20\n"}, "go.mod lowers the version of the language",
		},
		"generates": {files{
			"sum/gen.go": "package sum\n\n//go:generate cp -r . /tmp/tests\n//line add_test.go:1\n",
		}, "want 5"},
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
