"""Runs one file of unittest tests and writes a JUnit report: unittest_junit.py REPORT FILE

The tests run in a child process together with the code under test. That process never learns where the report goes; this one writes it, and only believes rows
that come with a secret which the child was given before the code under test was loaded. A child that ends early has no rows.
"""

import importlib.util
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
import unittest
from xml.etree import ElementTree


class Recorder(unittest.TestResult):
    """Keeps one outcome per test."""

    def __init__(self):
        super().__init__()
        self.rows = []
        self.began = {}

    def startTest(self, test):
        super().startTest(test)
        self.began[id(test)] = time.monotonic()

    def row(self, test, kind, text=""):
        seconds = time.monotonic() - self.began.get(id(test), time.monotonic())
        self.rows.append((test.id(), seconds, kind, text))

    def addSuccess(self, test):
        super().addSuccess(test)
        self.row(test, None)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.row(test, "failure", self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.row(test, "error", self.errors[-1][1])

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.row(test, "skipped", reason)

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.row(test, "skipped", "expected to fail")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.row(test, "failure", "passed although it was expected to fail")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.row(subtest, "failure", self._exc_info_to_string(err, test))


def printable(text):
    """XML cannot hold most control characters."""
    return "".join(c if c in "\t\n" or c.isprintable() else "?" for c in text)


def report(rows, path):
    kinds = [row[2] for row in rows]
    suite = ElementTree.Element(
        "testsuite",
        name="unittest",
        tests=str(len(kinds)),
        failures=str(kinds.count("failure")),
        errors=str(kinds.count("error")),
        skipped=str(kinds.count("skipped")),
    )
    for name, seconds, kind, text in rows:
        group, _, short = name.rpartition(".")
        case = ElementTree.SubElement(suite, "testcase", classname=group, name=short, time="%.3f" % seconds)
        if kind:
            inner = ElementTree.SubElement(case, kind, message=printable(text.strip().splitlines()[-1] if text.strip() else ""))
            inner.text = printable(text)
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def load(file):
    sys.path.insert(0, os.getcwd())
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    name = os.path.splitext(os.path.basename(file))[0]
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return unittest.defaultTestLoader.loadTestsFromModule(module)


def child():
    order = json.loads(sys.stdin.readline())
    out = order["out"]
    os.set_inheritable(out, False)
    sys.argv = [order["file"]]
    recorder = Recorder()
    load(order["file"]).run(recorder)
    os.write(out, json.dumps({"secret": order["secret"], "rows": recorder.rows}).encode())


def parent(path, file):
    secret = secrets.token_hex(16)
    with tempfile.TemporaryFile() as answer:
        out = answer.fileno()
        order = json.dumps({"file": file, "out": out, "secret": secret}) + "\n"
        done = subprocess.run([sys.executable, "-B", os.path.abspath(__file__)], input=order.encode(), pass_fds=[out], check=False)
        answer.seek(0)
        try:
            said = json.loads(answer.read())
            rows = said["rows"] if said["secret"] == secret else None
        except (ValueError, KeyError, TypeError):
            rows = None
    if rows is None or done.returncode != 0:
        rows = [("unittest.run", 0, "error", "the tests did not finish (exit status %d)" % done.returncode)]
    report(rows, path)
    return 0 if rows and all(row[2] is None for row in rows) else 1


if __name__ == "__main__":
    sys.exit(child() if len(sys.argv) == 1 else parent(sys.argv[1], sys.argv[2]))
