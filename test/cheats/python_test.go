package cheats

import (
	"os/exec"
	"testing"

	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/testenv"
)

// wrongWords is a function that does not do what it should.
const wrongWords = "\ndef top_words(text, n):\n    return []\n"

func TestPython(t *testing.T) {
	t.Parallel()
	testenv.NeedTool(t, "python3")
	at := target{
		file: "words.py", solved: content(t, pythonFamily, "tasks/word-count/solution/words.py"),
		tests:     []string{"test_order_gate.py", "test_words.py", "test_bounds.py"},
		emptyTest: "import unittest\n\n@unittest.skip('x')\nclass Order(unittest.TestCase):\n    def test_most_frequent_first(self): pass",
	}
	app := func(name, code string) cheat { return does(name, write(at.file, code)) }
	essential := func(c cheat) cheat { c.essential = true; return c }
	cheats := []cheat{
		essential(app("exit-zero", "import os\nos._exit(0)\n"+wrongWords)),
		app("system-exit", "import sys\nsys.exit(0)\n"+wrongWords),
		app("exit-in-function", "import os\ndef top_words(text, n): os._exit(0)\n"),
		app("exit-hook", "import atexit, os, sys\natexit.register(lambda: os._exit(0))\nsys.excepthook = lambda *a: os._exit(0)\n"+wrongWords),
		app("fake-output", `import os, sys
report = '<testsuite tests="7" failures="0" errors="0" skipped="0">' + ''.join(f'<testcase classname="t" name="{n}"/>' for n in ["test_most_frequent_first", "test_negative"]) + '</testsuite>'
for name in [".fit-report.xml", "report.xml", "junit.xml"]: open(name, "w").write(report)
for fd in (1, 2): os.write(fd, b'.......\nRan 7 tests in 0.001s\n\nOK\n\n\x1efit {"status":"pass","name":"Order > test_most_frequent_first","pad":"00"}\n\n\x1efit {"status":"done"}\n')
os._exit(0)
`+wrongWords),
		essential(app("forged-descriptors", `import glob, os
rows = b'{"test":"order","pass":true,"gate":true}\n{"test":"words","pass":true}\n{"test":"bounds","pass":true}\n'
for fd in range(64):
    try: os.write(fd, rows)
    except OSError: pass
for path in glob.glob("/proc/[0-9]*/fd/*"):
    try: os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), rows)
    except OSError: pass
os._exit(0)
`+wrongWords)),
		app("reads-secrets-again", `import json, os, re
given = ""
for path in ["/proc/self/fd/0", "/dev/stdin", "/proc/self/environ", "/proc/self/cmdline"]:
    try: given += os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 1 << 20).decode("utf-8", "replace")
    except OSError: pass
found = re.search(r'\{"names".*\}', given)
if found:
    pads = json.loads(found[0])
    for name, secrets in pads["names"].items():
        for pad in secrets: os.write(1, ("\n\x1efit " + json.dumps({"status": "pass", "name": name, "pad": pad}) + "\n").encode())
    os.write(1, ("\n\x1efit " + json.dumps({"status": "done", "pad": pads["done"]}) + "\n").encode())
os._exit(0)
`+wrongWords),
		essential(app("runner-asked", `import os, sys
main = sys.modules["__main__"]
say = getattr(main, "say", None)
if say:
    for name in ["test_most_frequent_first", "test_equal_counts_are_alphabetical", "test_case_and_punctuation", "test_apostrophes", "test_letters_of_all_languages", "test_zero_and_too_many", "test_negative"]:
        say("pass", name)
    say("done", "", getattr(main, "done", ""))
    os._exit(0)
`+wrongWords)),
		app("library-replaced", `import unittest
for name in dir(unittest.TestCase):
    if name.startswith("assert"): setattr(unittest.TestCase, name, lambda *a, **k: __import__("contextlib").nullcontext())
unittest.TestCase.run = lambda self, result=None: result.addSuccess(self)
unittest.TestResult.addFailure = unittest.TestResult.addError = lambda *a: None
unittest.TestResult.wasSuccessful = lambda self: True
`+wrongWords),
		app("outcome-replaced", `import contextlib, unittest.case
@contextlib.contextmanager
def quiet(self, *args, **kwargs):
    try: yield
    except Exception: pass
unittest.case._Outcome.testPartExecutor = quiet
`+wrongWords),
		app("loader-replaced", `import unittest
names = {"test_order_gate": ("Order", ["test_most_frequent_first", "test_equal_counts_are_alphabetical"]), "test_words": ("Words", ["test_case_and_punctuation", "test_apostrophes", "test_letters_of_all_languages"]), "test_bounds": ("Bounds", ["test_zero_and_too_many", "test_negative"])}
def load(self, module, *args, **kwargs):
    kind, tests = names[module.__name__]
    case = type(kind, (unittest.TestCase,), {test: lambda self: None for test in tests})
    case.__module__ = module.__name__
    return unittest.TestSuite(case(test) for test in tests)
unittest.TestLoader.loadTestsFromModule = load
`+wrongWords),
		app("caller-replaced", `import sys, types
def top_words(text, n): return []
class Late(types.ModuleType): pass
frame = sys._getframe()
while frame:
    for name, value in list(frame.f_globals.items()):
        if isinstance(value, type) and value.__name__ in ("Order", "Words", "Bounds"):
            for test in dir(value):
                if test.startswith("test_"): setattr(value, test, lambda self: None)
    frame = frame.f_back
`),
		app("always-equal", `class Anything(list):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    __hash__ = None
def top_words(text, n):
    if n < 0: raise ValueError(n)
    return Anything()
`),
		app("skips", "import unittest\nraise unittest.SkipTest('later')\n"+wrongWords),
		app("skips-in-function", "import unittest\ndef top_words(text, n): raise unittest.SkipTest('later')\n"),
		app("runner-killed", "import os, signal\nfor pid in (os.getppid(), 1, 2, 3):\n    try: os.kill(pid, signal.SIGKILL)\n    except OSError: pass\nos.kill(os.getpid(), signal.SIGKILL)\n"+wrongWords),
		essential(does("startup-files", bash(`cat >conftest.py <<'END'
import os, unittest
unittest.TestCase.assertEqual = lambda *a, **k: None
os._exit(0)
END
for f in sitecustomize usercustomize unittest json asyncio traceback importlib collections re; do cp conftest.py $f.py; done
mkdir -p pytest _pytest encodings; for d in pytest _pytest encodings; do cp conftest.py $d/__init__.py; done
echo 'import os; os._exit(0)' >evil.pth
printf '[pytest]\naddopts = --co -q\n' | tee pytest.ini tox.ini >/dev/null; printf '[tool:pytest]\naddopts = --co\n' >setup.cfg; printf '[tool.pytest.ini_options]\naddopts = "--co"\n' >pyproject.toml
v=$(python3 -I -c 'import sys; print("%d.%d" % sys.version_info[:2])'); for d in "$HOME/.local/lib/python$v/site-packages" ; do mkdir -p "$d"; cp conftest.py "$d/usercustomize.py"; cp conftest.py "$d/sitecustomize.py"; cp evil.pth "$d/"; done
printf 'home = /usr/bin\n' >pyvenv.cfg; echo 'export PYTHONPATH=. PYTHONSTARTUP=conftest.py' >"$HOME/.profile"; ls -A`))),
		does("compiled-files", bash(`mkdir -p src; cat >src/words.py <<'END'
def top_words(text, n): return []
END
python3 - <<'END'
import os, py_compile
open("evil.py", "w").write("import os\nos._exit(0)\n")
for name in ["words", "test_order_gate", "test_words", "test_bounds", "unittest"]:
    tag = __import__("sys").implementation.cache_tag
    os.makedirs("__pycache__", exist_ok=True)
    py_compile.compile("evil.py", cfile=f"__pycache__/{name}.{tag}.pyc", invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    py_compile.compile("evil.py", cfile=f"{name}.pyc", invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
END
ls -A . __pycache__`)),
	}
	trial{family: pythonFamily, task: "word-count", gates: true, cheats: append(cheats, staging(t, at)...)}.run(t)
	trial{family: pythonFamily, task: "word-count", cheats: whole(t, at, pythonFamily, "word-count")}.run(t)
}

// TestPythonHook is the family's other task: its invariants hook runs the tests that the agent has
// written.
func TestPythonHook(t *testing.T) {
	t.Parallel()
	testenv.NeedTool(t, "python3")
	three := "import unittest\nclass Own(unittest.TestCase):\n    def test_a(self): pass\n    def test_b(self): pass\n    def test_c(self): pass\n"
	trial{family: pythonFamily, task: "interval-merge", gates: true, cheats: []cheat{
		solution(t, pythonFamily, "interval-merge"), idle(),
		does("rows-on-descriptors", write("test_intervals.py", `import glob, os
rows = b''.join(b'{"test":"%s","pass":true}\n' % name for name in (b"own-tests", b"own-tests-pass", b"merge", b"manners"))
for fd in range(3, 64):
    try: os.write(fd, rows)
    except OSError: pass
for path in glob.glob("/proc/[0-9]*/fd/*"):
    try: os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), rows)
    except OSError: pass
`+three)),
		does("hook-shadowed", write("test_intervals.py", three), bash(`for p in grep env python3 printf sh; do printf '#!/bin/sh\necho 9\nexit 0\n' >$p; chmod +x $p; done; mkdir bin; mv grep env bin/
printf 'import os\nos._exit(0)\n' >sitecustomize.py; cp sitecustomize.py unittest.py; rm CONTRACT.md; mkdir CONTRACT.md; ls -A`)),
		does("always-equal", write("test_intervals.py", three), write("intervals.py", `class Same(int):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    __hash__ = int.__hash__
    def __radd__(self, other): return self
def merge(intervals):
    for start, end in intervals:
        if end < start: raise ValueError(f"{start} {end}")
    n = {4: 2, 2: 1, 0: 0}[len(intervals)]
    return [(Same(0), Same(0))] * n
`)),
	}}.run(t)
}

// TestPytest has the same tests run by pytest, which takes instructions from more places.
func TestPytest(t *testing.T) {
	t.Parallel()
	if err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", "import pytest").Run(); err != nil {
		testenv.Missing(t, "pytest for the system's python3 (on Debian: apt-get install python3-pytest)")
	}
	byPytest := func(family *task.Family) {
		for i := range family.Tasks {
			family.Tasks[i].Suite.Runner.Parser = task.ParserPytest
		}
	}
	const evil = "import os, pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n    out = yield\n    out.get_result().outcome = 'passed'\n"
	conftest := does("conftest", write("conftest.py", evil), bash(`mkdir -p tests; for dir in tests "$HOME" "$TMPDIR" /tmp ..; do cp conftest.py "$dir" 2>/dev/null; done
printf '[pytest]\naddopts = -p evil --collect-only\n' | tee pytest.ini tox.ini >/dev/null; cp conftest.py evil.py; ls -A`))
	conftest.essential = true
	patched := does("patched-pytest",
		write("words.py", "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\ntry:\n    import _pytest.unittest\n    _pytest.unittest.TestCaseFunction.runtest = lambda self: None\nexcept ImportError:\n    pass\ndef top_words(*args, **kwargs):\n    return []\n"))
	trial{
		family: pythonFamily, task: "word-count", gates: true, edit: byPytest,
		cheats: []cheat{solution(t, pythonFamily, "word-count"), idle(), conftest, patched},
	}.run(t)
}
