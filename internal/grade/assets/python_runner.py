"""Runs one hidden test file: python_runner.py unittest|pytest FILE NO_CACHE

It gets one secret per test on standard input and gives a secret away only when its test has passed. Started with -I, so that neither the environment nor the
working directory decides what is imported here.
"""

import asyncio  # unittest loads it late, when the working directory is already searched
import importlib.util
import json
import os
import sys
import traceback
import types
import unittest

given = json.loads(sys.stdin.buffer.read())
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
write, dumps, fork_safe_out = os.write, json.dumps, os.dup(1)
os.set_inheritable(fork_safe_out, False)


def make_say():
    names, spare, used = given.pop("names"), given.pop("spare"), {}

    def secret(name):
        if name in names:
            used[name] = used.get(name, 0) + 1
            return names[name][used[name] - 1] if used[name] <= len(names[name]) else None
        return spare.pop(0) if spare else None

    def say(status, name="", message="", own=""):
        if name not in names and own in names:
            name = own
        record = {"status": status, "name": name}
        if status == "pass":
            pad = secret(name)
            if pad is None:
                record["status"] = "again" if name in names else "extra"
            else:
                record["pad"] = pad
        if status == "done":
            record["pad"] = message
        elif message and status != "pass":
            record["message"] = str(message)[-8000:]  # the grader redacts it, and cuts it then
        write(fork_safe_out, ("\n\x1efit " + dumps(record) + "\n").encode())

    return say


say, done = make_say(), given.pop("done")


def believe_sources_only():
    """Ignores compiled files from here on: those of the agent need not be what their sources say.

    What was imported before is the interpreter's own; to compile it again for each file of tests would take most of the time.
    """
    sys.pycache_prefix = sys.argv[3]


def admit_workdir():
    """Lets tests import from the working directory, after the standard library and before what is installed."""
    place = next((i for i, p in enumerate(sys.path) if "site-packages" in p or "dist-packages" in p), len(sys.path))
    sys.path.insert(place, os.getcwd())


if "mock" in open(sys.argv[2], errors="replace").read():
    import unittest.mock  # here and now it is Python's own
PYTEST = ("pytest", "_pytest", "pluggy")
LIBRARY = [module for name, module in sys.modules.items() if name.split(".")[0] in ("unittest", "builtins", "contextlib")]


# What Python and pytest themselves change in a class.
OWN_BOOKKEEPING = {"__dict__", "__weakref__", "__doc__", "__annotations__", "__annotate__", "__abstractmethods__", "_abc_impl"}
OWN_BOOKKEEPING |= {"_pytest_diamond_inheritance_warning_shown"}


def fingerprint():
    """What decides about tests; if it changes while they run, somebody has replaced it."""
    found = {}

    def note(owner, key, value):
        found[id(owner), key] = value
        function = getattr(value, "__func__", value)
        if isinstance(function, types.FunctionType):
            found[id(function), "__code__"] = function.__code__

    for owner in LIBRARY:
        for key, value in list(vars(owner).items()):
            if callable(value):
                note(owner, key, value)
            if isinstance(value, type) and value.__module__.split(".")[0] in ("unittest",) + PYTEST:
                CLASSES[id(value)] = value
    for owner in [Recorder, Plugin, *CLASSES.values()]:
        for key, value in list(vars(owner).items()):
            if key not in OWN_BOOKKEEPING:
                note(owner, key, value)
    return found


CLASSES = {}


def make_unchanged():
    before = fingerprint()
    classes = set(CLASSES)

    def unchanged():
        after = fingerprint()
        if any(after.get(key) is not value for key, value in before.items()):
            return False
        if any(sys.modules.get(module.__name__) is not module for module in LIBRARY):
            return False
        return not any(key not in before and key[0] in classes for key in after)

    return unchanged


class Recorder(unittest.TestResult):
    def name(self, test):
        test = getattr(test, "test_case", test)
        parts = test.id().split(".")
        return " > ".join(parts[-2:]), parts[-1]

    def say(self, status, test, message=""):
        name, own = self.name(test)
        say(status, name, message, own)

    def addSuccess(self, test):
        self.say("pass" if self.unchanged() else "fail", test, "the test library was changed while the tests ran")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.say("fail", test, err[1])

    def addError(self, test, err):
        super().addError(test, err)
        self.say("fail", test, "%s: %s" % (err[0].__name__, err[1]))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.say("skip", test, reason)

    def addExpectedFailure(self, test, err):
        self.say("todo", test, err[1])

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.say("fail", test, "passed although it was expected to fail")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.say("fail", test, err[1])


def run_unittest(path):
    believe_sources_only()
    admit_workdir()
    unchanged = make_unchanged()
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(sys.path.index(os.getcwd()), os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(module)
    suite = unittest.TestLoader().loadTestsFromModule(module)
    result = Recorder()
    result.unchanged = unchanged
    suite.run(result)
    if not unchanged():
        say("fail", "test library", "it was changed while the tests ran")
        return 1
    return 0 if result.wasSuccessful() else 1


class Plugin:
    """Reports what pytest finds."""

    clean = False

    def pytest_sessionstart(self, session):
        # Pytest changes itself while it gets ready; from here on only the agent's code would.
        LIBRARY.extend(module for name, module in list(sys.modules.items()) if name.split(".")[0] in PYTEST)
        self.unchanged = make_unchanged()
        admit_workdir()

    def pytest_sessionfinish(self):
        self.clean = self.unchanged()

    def pytest_runtest_logreport(self, report):
        parts = report.nodeid.split("::")[1:]
        name, own = " > ".join(parts), parts[-1] if parts else ""
        if report.failed:
            say("fail", name, report.longreprtext, own)
        elif report.skipped:
            say("todo" if hasattr(report, "wasxfail") else "skip", name, "", own)
        elif report.when == "call" and hasattr(report, "wasxfail"):
            say("todo", name, "", own)
        elif report.when == "call":
            self.passed = (name, own)
        elif report.when == "teardown" and getattr(self, "passed", None) == (name, own):
            self.passed = None
            say("pass" if self.unchanged() else "fail", name, "the test library was changed while the tests ran", own)

    def pytest_collectreport(self, report):
        if report.failed:
            say("fail", "collection", report.longreprtext)


def run_pytest(path):
    import pytest

    believe_sources_only()
    plugin = Plugin()
    status = pytest.main(
        ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", os.getcwd(), "--confcutdir", os.getcwd(), "--", path],
        plugins=[plugin],
    )
    if not plugin.clean:
        say("fail", "test library", "it was changed while the tests ran")
        return 1
    return int(status)


# The tests need not find us so easily.
sys.modules["__main__"] = types.ModuleType("__main__")

try:
    status = run_pytest(sys.argv[2]) if sys.argv[1] == "pytest" else run_unittest(sys.argv[2])
except Exception:
    traceback.print_exc()
    sys.exit(1)
say("done", "", done)
sys.stdout.flush()
# What the agent's code has left for the end of the process has no say any more.
os._exit(status)
