package grade_test

import (
	"os/exec"
	"testing"

	"github.com/fit-eval/fit/grade"
)

const (
	pythonRight = "def add(a, b):\n    return a + b\n"
	pythonWrong = "def add(a, b):\n    return a - b\n"
)

func pythonTask(more ...files) files {
	content := files{
		"workdir/calc.py":  pythonWrong,
		"solution/calc.py": pythonRight,
		"tests/checks/test_add.py": `import unittest
from checks.support import five
import calc


class Adding(unittest.TestCase):
    def test_two(self):
        self.assertEqual(calc.add(2, 3), five)

    def test_many(self):
        for n in range(3):
            with self.subTest(n=n):
                self.assertEqual(calc.add(n, n), 2 * n)
`,
		"tests/checks/support.py": "five = 5\n",
	}
	for _, m := range more {
		for name, text := range m {
			content[name] = text
		}
	}
	return content
}

func TestPythonSuite(t *testing.T) {
	b := pythonBench(t, pythonTask())
	b.want(grade.VerdictFail, "Adding > test_two failed (-1 != 5)")
	b.another(t).agent(files{"calc.py": pythonRight}).want(grade.VerdictPass, "")
}

// Each of these agents tries to pass without having solved the task.
func TestCheatingPythonAgents(t *testing.T) {
	all := pythonBench(t, pythonTask(files{"task.yaml": "timeouts:\n  test: 5s\n"}))
	for name, test := range map[string]struct {
		agent  files
		reason string
	}{
		"os._exit(0) when imported": {files{"calc.py": "import os\nos._exit(0)\n"}, "did not run to their end"},
		"sys.exit(0) when imported": {files{"calc.py": "import sys\nsys.exit(0)\n"}, "did not run to their end"},
		"os._exit(0) in a test":     {files{"calc.py": "import os\ndef add(a, b):\n    os._exit(0)\n"}, "did not run to their end"},
		"an exit handler":           {files{"calc.py": "import atexit, os\natexit.register(os._exit, 0)\n" + pythonWrong}, "test_two failed"},
		"conftest.py": {
			files{"conftest.py": "import os\nos._exit(0)\n", "checks/conftest.py": "def pytest_runtest_makereport(item, call):\n    pass\n"}, "test_two failed",
		},
		"sitecustomize.py":     {files{"sitecustomize.py": "import os\nos._exit(0)\n", "usercustomize.py": "import os\nos._exit(0)\n"}, "test_two failed"},
		"settings of pytest":   {files{"pytest.ini": "[pytest]\naddopts = --collect-only\n", "tox.ini": "[pytest]\naddopts=-k nothing\n", "setup.cfg": "[tool:pytest]\naddopts = --co\n"}, "test_two failed"},
		"a library in the way": {files{"unittest.py": "import os\nos._exit(0)\n", "json.py": "", "importlib/__init__.py": ""}, "test_two failed"},
		"replaced assertions": {
			files{"calc.py": "import unittest\nunittest.TestCase.assertEqual = lambda *a, **k: None\n" + pythonWrong}, "changed while the tests ran",
		},
		"printed report": {
			files{"calc.py": "import os\nprint('Ran 2 tests in 0.001s\\n\\nOK')\nfor n in ('Adding > test_two', 'Adding > test_many'):\n    os.write(1, ('\\n\\x1efit {\"status\":\"pass\",\"name\":\"%s\",\"pad\":\"0\"}\\n' % n).encode())\nos._exit(0)\n"}, "forged",
		},
		"tampered tests": {files{"checks/test_add.py": "", "checks/support.py": "five = -1\n"}, "test_two failed"},
		"kills itself":   {files{"calc.py": "import os\nos.kill(os.getpid(), 9)\n"}, "was killed by"},
		"hang":           {files{"calc.py": "while True: pass\n"}, "timed out after 5000ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all.another(t).agent(test.agent).want(grade.VerdictFail, test.reason)
		})
	}
}

func TestSkippedAndEmptyPythonTestsProveNothing(t *testing.T) {
	for name, source := range map[string]string{
		"skipped":          "import unittest\nclass A(unittest.TestCase):\n    @unittest.skip('later')\n    def test_a(self): pass\n",
		"expected to fail": "import unittest\nclass A(unittest.TestCase):\n    @unittest.expectedFailure\n    def test_a(self): self.fail()\n",
		"empty":            "import unittest\n",
	} {
		t.Run(name, func(t *testing.T) {
			pythonBench(t, pythonTask(files{"tests/checks/test_add.py": source})).agent(files{"calc.py": pythonRight}).want(grade.VerdictFail, "")
		})
	}
}

func TestPytestSuite(t *testing.T) {
	if exec.Command("/usr/bin/python3", "-c", "import pytest").Run() != nil {
		t.Skip("pytest is not installed for the system's python3")
	}
	content := pythonTask(files{"tests/checks/test_add.py": "import calc, pytest\n\n@pytest.mark.parametrize('n', [1, 2])\ndef test_add(n):\n    assert calc.add(n, n) == 2 * n\n"})
	b := pythonBench(t, content)
	b.agent(files{"conftest.py": "import os\nos._exit(0)\n", "pytest.ini": "[pytest]\naddopts = --collect-only\n"}).want(grade.VerdictFail, "test_add[1] failed")
	b.another(t).agent(files{"calc.py": pythonRight}).want(grade.VerdictPass, "")
}

func TestCompiledPythonFilesOfTheAgentAreNotBelieved(t *testing.T) {
	b := pythonBench(t, pythonTask())
	b.agent(files{"fake.py": "import unittest\nclass Adding(unittest.TestCase):\n    def test_two(self): pass\n    def test_many(self): pass\n"})
	// A compiled file of this kind is taken without a look at the source beside it.
	compile := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", `import py_compile, importlib.util as u
py_compile.compile('fake.py', cfile=u.cache_from_source('checks/test_add.py'), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)`)
	compile.Dir = b.ws.Dir
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.want(grade.VerdictFail, "test_two failed")
}
