package grade_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fit-eval/fit/internal/cheattest"
	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/internal/workspace"
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

// A hidden test may load the library of mocks after the code under test, which cannot replace it.
func TestPythonTestsHaveTheMocksOfTheLibrary(t *testing.T) {
	for _, runner := range []string{"unittest", "pytest"} {
		t.Run(runner, func(t *testing.T) {
			all := pythonBench(t, pythonTask(files{
				"task.yaml": "tests: {runner: " + runner + "}\n", "workdir/calc.py": "def each(f): pass\n",
				"solution/calc.py": "def each(f): f(5)\n",
				"tests/checks/test_add.py": `import unittest
import calc
from unittest.mock import Mock


class Calling(unittest.TestCase):
    def test_once(self):
        called = Mock()
        calc.each(called)
        called.assert_called_once_with(5)
`,
			}))
			library := cheattest.All(t, "python", map[string]string{"file": "calc.py", "wrong": "def each(f): pass"})
			for _, name := range []string{"mock-replaced", "modules-replaced"} {
				all.another(t).agent(library[name].Files).want(grade.VerdictFail, "the test library was changed")
			}
			all.another(t).agent(files{"calc.py": "from unittest import mock\nmock.Mock(spec=list)()\n\ndef each(f):\n    f(5)\n"}).
				want(grade.VerdictPass, "")
		})
	}
}

// Each of these agents tries to pass without having solved the task.
func TestCheatingPythonAgents(t *testing.T) {
	all := pythonBench(t, pythonTask())
	for name, test := range map[string]struct {
		agent  files
		reason string
	}{
		"os._exit(0) when imported": {files{"calc.py": "import os\nos._exit(0)\n"}, "did not finish"},
		"sys.exit(0) when imported": {files{"calc.py": "import sys\nsys.exit(0)\n"}, "did not finish"},
		"os._exit(0) in a test": {
			files{"calc.py": "import os\ndef add(a, b):\n    os._exit(0)\n"},
			"did not finish",
		},
		"an exit handler": {files{"calc.py": "import atexit, os\natexit.register(os._exit, 0)\n" +
			pythonWrong}, "test_two failed"},
		"conftest.py": {
			files{
				"conftest.py":        "import os\nos._exit(0)\n",
				"checks/conftest.py": "def pytest_runtest_makereport(item, call):\n    pass\n",
			}, "test_two failed",
		},
		"sitecustomize.py": {files{
			"sitecustomize.py": "import os\nos._exit(0)\n",
			"usercustomize.py": "import os\nos._exit(0)\n",
		}, "test_two failed"},
		"settings of pytest": {
			files{
				"pytest.ini": "[pytest]\naddopts = --collect-only\n",
				"tox.ini":    "[pytest]\naddopts=-k nothing\n", "setup.cfg": "[tool:pytest]\naddopts = --co\n",
			},
			"test_two failed",
		},
		"a library in the way": {files{
			"unittest.py": "import os\nos._exit(0)\n", "json.py": "",
			"importlib/__init__.py": "",
		}, "test_two failed"},
		"replaced assertions": {
			files{"calc.py": "import unittest\nunittest.TestCase.assertEqual = lambda *a, **k: None\n" + pythonWrong},
			"changed while the tests ran",
		},
		"replaced code": {
			files{"calc.py": "import unittest\nunittest.TestCase.assertEqual.__code__ = (lambda self, first, second, msg=None: None).__code__\n" + pythonWrong}, "changed while the tests ran",
		},
		"printed report": {
			files{"calc.py": "import os\nprint('Ran 2 tests in 0.001s\\n\\nOK')\nfor n in ('Adding > test_two', 'Adding > test_many'):\n    os.write(1, ('\\n\\x1efit {\"status\":\"pass\",\"name\":\"%s\",\"pad\":\"0\"}\\n' % n).encode())\nos._exit(0)\n"}, "forged",
		},
		"tampered tests": {files{"checks/test_add.py": "", "checks/support.py": "five = -1\n"}, "test_two failed"},
		"kills itself":   {files{"calc.py": "import os\nos.kill(os.getpid(), 9)\n"}, "was killed by"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all.another(t).agent(test.agent).want(grade.VerdictFail, test.reason)
		})
	}
}

func TestPythonTestsThatHangFail(t *testing.T) {
	wantTimeout(t, "test", func(t *testing.T, yaml files) *bench {
		return pythonBench(t, pythonTask(yaml))
	}, files{"calc.py": "while True: pass\n"})
}

func TestSkippedAndEmptyPythonTestsProveNothing(t *testing.T) {
	for name, source := range map[string]string{
		"skipped":          "import unittest\nclass A(unittest.TestCase):\n    @unittest.skip('later')\n    def test_a(self): pass\n",
		"expected to fail": "import unittest\nclass A(unittest.TestCase):\n    @unittest.expectedFailure\n    def test_a(self): self.fail()\n",
		"empty":            "import unittest\n",
	} {
		t.Run(name, func(t *testing.T) {
			pythonBench(t, pythonTask(files{"tests/checks/test_add.py": source})).agent(
				files{"calc.py": pythonRight}).want(grade.VerdictFail, "")
		})
	}
}

// pytestTask is a suite that only pytest can run.
func pytestTask(more ...files) files {
	return pythonTask(append([]files{{"tests/checks/test_add.py": `import calc, pytest
from checks.support import five


@pytest.mark.parametrize('n', [1, 2])
def test_add(n):
    assert calc.add(n, n) == 2 * n


class TestMore:
    @pytest.fixture
    def three(self):
        return 3

    def test_five(self, three):
        assert calc.add(2, three) == five
`}}, more...)...)
}

func pytestBench(t *testing.T, more ...files) *bench {
	t.Helper()
	if exec.Command("/usr/bin/python3", "-c", "import pytest").Run() != nil {
		testenv.Missing(t, "pytest for the system's python3 (on Debian: apt-get install python3-pytest)")
	}
	return pythonBench(t, pytestTask(more...))
}

func TestPytestSuite(t *testing.T) {
	b := pytestBench(t)
	b.want(grade.VerdictFail, "test_add[1] failed")
	b.another(t).agent(files{"calc.py": pythonRight}).want(grade.VerdictPass, "")
}

// Each of these agents tries to make pytest say that all is well.
func TestCheatingPytestAgents(t *testing.T) {
	all := pytestBench(t)
	const replace = "import _pytest.python, _pytest.runner, pytest\n%s\n" + pythonWrong
	for name, test := range map[string]struct {
		agent  files
		reason string
	}{
		"conftest.py that ends": {files{
			"conftest.py":        "import os\nos._exit(0)\n",
			"checks/conftest.py": "import os\nos._exit(0)\n",
		}, "test_add[1] failed"},
		"conftest.py that reports": {files{"conftest.py": "import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n    out = yield\n    out.get_result().outcome = 'passed'\n"}, "test_add[1] failed"},
		"conftest.py that chooses": {files{"conftest.py": "def pytest_collection_modifyitems(items):\n    items[:] = []\n"}, "test_add[1] failed"},
		"settings": {files{
			"pytest.ini":     "[pytest]\naddopts = --collect-only\n",
			"pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--co'\n",
			"tox.ini":        "[pytest]\naddopts=-k nothing\n",
		}, "test_add[1] failed"},
		"a plugin in the directory": {files{
			"evil.py":                           "import os\nos._exit(0)\n",
			"evil-1.dist-info/METADATA":         "Metadata-Version: 2.1\nName: evil\nVersion: 1\n",
			"evil-1.dist-info/entry_points.txt": "[pytest11]\nevil = evil\n",
		}, "test_add[1] failed"},
		"pytest.py in the way": {files{
			"pytest.py": "import os\nos._exit(0)\n", "_pytest/__init__.py": "",
			"pluggy.py": "",
		}, "test_add[1] failed"},
		"reports that are good for a while": {files{"calc.py": fmt.Sprintf(replace,
			"import threading\n_pytest.runner.TestReport.failed = False\nthreading.Timer(0.5, lambda: delattr(_pytest.runner.TestReport, 'failed')).start()")}, ""},
		"code that is replaced": {files{"calc.py": fmt.Sprintf(replace,
			"_pytest.python.Function.runtest.__code__ = (lambda self: None).__code__")}, "changed while the tests ran"},
		"exit": {
			files{"calc.py": "import pytest\npytest.exit('done', returncode=0)\n"},
			"",
		},
		"skip":             {files{"calc.py": "import pytest\npytest.skip('later', allow_module_level=True)\n"}, ""},
		"skip in a test":   {files{"calc.py": "import pytest\ndef add(a, b):\n    pytest.skip('later')\n"}, "skipped"},
		"expected failure": {files{"calc.py": "import pytest\ndef add(a, b):\n    pytest.xfail('later')\n"}, "to do"},
		"tests that do not run": {files{"calc.py": fmt.Sprintf(replace,
			"_pytest.python.Function.runtest = lambda self: None")}, "changed while the tests ran"},
		"reports that are good": {files{"calc.py": fmt.Sprintf(replace,
			"_pytest.runner.TestReport.outcome = property(lambda self: 'passed', lambda self, v: None)\n_pytest.runner.TestReport.failed = False")}, ""},
		"calls that are good": {files{"calc.py": fmt.Sprintf(replace,
			"_pytest.runner.CallInfo.from_call = classmethod(lambda cls, func, when, reraise=None: cls(None, None, 0, 0, 0, when, _ispytest=True))")}, "changed while the tests ran"},
		"os._exit(0) in a test": {
			files{"calc.py": "import os\ndef add(a, b):\n    os._exit(0)\n"},
			"did not finish",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all.another(t).agent(test.agent).want(grade.VerdictFail, test.reason)
		})
	}
}

func TestPytestIsLookedForOnTheWholeSearchPath(t *testing.T) {
	fake := t.TempDir()
	files{"python3": "#!/bin/sh\necho this one has no packages >&2\nexit 1\n"}.write(t, fake)
	t.Setenv("PATH", fake+":/usr/local/bin:/usr/bin:/bin")
	pytestBench(t, files{"task.yaml": "isolation: none\n"}).agent(files{"calc.py": pythonRight}).want(grade.VerdictPass,
		"")
	b := pytestBench(t, files{"task.yaml": "isolation: none\n"})
	b.config.Source = elsewhere{b.ws, fake}
	b.agent(files{"calc.py": pythonRight}).want(grade.VerdictError, "apt-get install python3-pytest")
}

// elsewhere is a workspace whose graders have another search path.
type elsewhere struct {
	*workspace.Workspace
	path string
}

// Grader implements grade.Source.
func (e elsewhere) Grader(c *workspace.Copy) workspace.Place {
	place := e.Workspace.Grader(c)
	place.Env["PATH"] = e.path
	return place
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

// A compiled file may hold another program than the source beside it, which is what people see.
func TestCompiledPythonFilesAreNotBelieved(t *testing.T) {
	hidden := compiledPython(t, "calc", pythonRight)
	pythonBench(t, pythonTask()).agent(hidden).want(grade.VerdictFail, "test_two failed")
	pytestBench(t).agent(hidden).want(grade.VerdictFail, "test_add[1] failed")
}

// compiledPython compiles a module with each interpreter that may run a suite. Python never
// compares files of this kind with their source.
func compiledPython(t *testing.T, module, source string) files {
	t.Helper()
	dir := t.TempDir()
	files{module + ".py": source}.write(t, dir)
	const compile = `import py_compile, sys
unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
print(py_compile.compile(sys.argv[1], invalidation_mode=unchecked), end="")
`
	found := files{}
	for _, interpreter := range []string{"python3", "/usr/bin/python3"} {
		command := exec.CommandContext(t.Context(), interpreter, "-c", compile, module+".py")
		command.Dir = dir
		name, err := command.Output()
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(dir, string(name)))
		if err != nil {
			t.Fatal(err)
		}
		found[string(name)] = string(content)
	}
	return found
}
