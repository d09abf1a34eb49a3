"""Runs one file of unittest tests and writes a JUnit report: unittest_junit.py REPORT FILE"""

import importlib.util
import os
import sys
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


def report(recorder, path):
    kinds = [row[2] for row in recorder.rows]
    suite = ElementTree.Element(
        "testsuite",
        name="unittest",
        tests=str(len(kinds)),
        failures=str(kinds.count("failure")),
        errors=str(kinds.count("error")),
        skipped=str(kinds.count("skipped")),
    )
    for name, seconds, kind, text in recorder.rows:
        group, _, short = name.rpartition(".")
        case = ElementTree.SubElement(suite, "testcase", classname=group, name=short, time="%.3f" % seconds)
        if kind:
            inner = ElementTree.SubElement(case, kind, message=printable(text.strip().splitlines()[-1] if text.strip() else ""))
            inner.text = printable(text)
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def main():
    path, file = sys.argv[1], sys.argv[2]
    sys.path.insert(0, os.getcwd())
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    name = os.path.splitext(os.path.basename(file))[0]
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    recorder = Recorder()
    unittest.defaultTestLoader.loadTestsFromModule(module).run(recorder)
    report(recorder, path)
    return 0 if recorder.testsRun and recorder.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
