package grade_test

import (
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/testenv"
)

// Lint tries to read hidden files from a program under test, and from code under test in the
// language of the suite: only interpreters show code the test that they run.
func TestHiddenFilesThatCodeUnderTestCanRead(t *testing.T) {
	const tap = "echo 1..1; echo ok 1 - a\n"
	for name, test := range map[string]struct {
		b        *bench
		language string
		read     string
	}{
		"hook": {hookBench(t, answerHook, files{"tests/x.test.js": "require('node:test')('x', () => {});\n"}), "", ""},
		"shell": {newBench(t, files{
			"tests/a.tap.sh": tap, "workdir/x": "",
			"task.yaml": "tests:\n  language: other\n  files: [\"*.tap.sh\"]\n  command: [sh, \"{file}\"]\n  parser: tap\n",
		}), "", ""},
		"node": {nodeBench(t, nodeCheck()), "node", "test/add.test.js"},
		"python": {newBench(t, files{
			"tests/test_a.py": "import unittest, a\nclass A(unittest.TestCase):\n    def test_a(self): a.a()\n",
			"workdir/a.py":    "def a(): pass\n",
		}), "python", "test_a.py"},
		"python that no first test loads": {newBench(t, files{
			"tests/test_a.py": "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): open('b.py')\n",
			"tests/test_b.py": "import unittest, b\nclass B(unittest.TestCase):\n    def test_b(self): b.b()\n",
			"workdir/b.py":    "def b(): pass\n",
		}), "python", "test_b.py"},
		"go": {goBench(t, goCheck(goesOn)), "go", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if test.b.ws.Isolation != "bwrap" {
				testenv.Missing(t, "isolation with bubblewrap")
			}
			found, err := grade.Exposed(t.Context(), test.b.config)
			read := strings.Join(found.Code, " ")
			if len(found.Program) > 0 || found.Unloaded != (name == "hook") || found.Language != test.language ||
				read != test.read || err != nil {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
}

// Tests that look at files and load nothing of the work do not show what that could read.
func TestHiddenTestsThatLoadNoCodeAreNamed(t *testing.T) {
	b := newBench(t, files{
		"tests/test_a.py": "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): open('a.py')\n",
		"workdir/a.py":    "def a(): pass\n",
	})
	if b.ws.Isolation != "bwrap" {
		testenv.Missing(t, "isolation with bubblewrap")
	}
	if found, err := grade.Exposed(t.Context(), b.config); !found.Unloaded || found.Language != "" || err != nil {
		t.Errorf("%+v, %v", found, err)
	}
}
