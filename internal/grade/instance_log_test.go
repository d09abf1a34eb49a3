package grade

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLogsOfTests(t *testing.T) {
	for name, c := range map[string]struct {
		parser, log string
		want        map[string]logStatus
	}{
		"pytest": {
			"pytest", "PASSED tests/a.py::b\r\nFAILED tests/a.py::c - assert 1 == 2\nSKIPPED [1] tests/a.py:3: why\n" +
				"XFAIL tests/a.py::d\nERROR tests/a.py::e - boom\nPASSEDtests/a.py::f\nPASSED\n  PASSED tests/g\n",
			map[string]logStatus{
				"tests/a.py::b": logPassed, "tests/a.py::c": logFailed, "[1]": logSkipped, "tests/a.py::d": logXFail,
				"tests/a.py::e": logError,
			},
		},
		"a test that failed has failed, whatever is printed before or after": {
			"pytest", "PASSED a\nFAILED a\nPASSED a\nERROR b\nPASSED b\nPASSED c\nERROR c\n",
			map[string]logStatus{"a": logFailed, "b": logError, "c": logError},
		},
		"paths in parameters": {
			"pytest_options", "PASSED a.py::b[/tmp/x/y.txt]\nPASSED a.py::c[//host/z]\nPASSED a.py::d[1-2]\n",
			map[string]logStatus{
				"a.py::b[/y.txt]": logPassed, "a.py::c[//host/z]": logPassed, "a.py::d[1-2]": logPassed,
			},
		},
		"colours and the status behind": {
			"pytest_v2", "\x1b[32mPASSED\x1b[0m a.py::b\na.py::c PASSED\na.py::d FAILED\n",
			map[string]logStatus{"a.py::b": logPassed, "a.py::c": logPassed, "a.py::d": logFailed},
		},
		"django": {
			"django", "test_a (m.T) ... ok\ntest_b (m.T) ... FAIL\ntest_c (m.T) ... skipped 'why'\n" +
				"test_d (m.T) ... Creating tables\nmore\nok\ntest_e (m.T) ... ERROR\nFAIL: test_b (m.T)\n",
			map[string]logStatus{
				"test_a (m.T)": logPassed, "test_b (m.T)": logFailed, "test_c (m.T)": logSkipped,
				"test_d (m.T)": logPassed, "test_e (m.T)": logError, "test_b": logFailed,
			},
		},
		"sympy": {
			"sympy", "test_a ok\ntest_b F\ntest_c E\n___ sympy/x.py:test_d ___\n",
			map[string]logStatus{
				"test_a": logPassed, "test_b": logFailed, "test_c": logError, "sympy/x.py:test_d": logFailed,
			},
		},
		"seaborn": {
			"seaborn", "a.py::b PASSED [ 1%]\nFAILED a.py::c - why\n",
			map[string]logStatus{"a.py::b": logPassed, "a.py::c": logFailed},
		},
		"go": {
			"gotest", "--- PASS: TestA (0.00s)\n    --- FAIL: TestA/b (0.01s)\n--- SKIP: TestC (0.00s)\n" +
				"ok  \tpkg\t0.1s\n",
			map[string]logStatus{"TestA": logPassed, "TestA/b": logFailed, "TestC": logSkipped},
		},
		"cargo": {
			"cargo", "test a::b ... ok\ntest a::c ... FAILED\ntest a::d ... ignored\n",
			map[string]logStatus{"a::b": logPassed, "a::c": logFailed, "a::d": logSkipped},
		},
		"jest": {
			"jest", "  ✓ adds (3 ms)\n  ✕ multiplies\n  ○ divides\n",
			map[string]logStatus{"adds": logPassed, "multiplies": logFailed, "divides": logSkipped},
		},
		"tap": {
			"tap", "TAP version 13\nok 1 - adds\nnot ok 2 - multiplies\nok 3 - divides # SKIP later\n",
			map[string]logStatus{
				"adds": logPassed, "- adds": logPassed, "multiplies": logFailed, "- multiplies": logFailed,
				"divides": logSkipped, "- divides": logSkipped,
			},
		},
		"a parser that does not exist": {"none", "PASSED a\n", map[string]logStatus{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, parseLog(c.parser, c.log)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Only what stands between the markers with the secret of the run counts; without them the last end
// is the true one.
func TestWhatTestsPrintedStandsBetweenMarkers(t *testing.T) {
	for name, c := range map[string]struct {
		log, want string
		ended     bool
		status    int
	}{
		"with the secret": {
			"setup\n>>>>> Start Test Output\nN start\nPASSED a\n>>>>> End Test Output\nFAILED b\n\nN end 1\n",
			"PASSED a\n>>>>> End Test Output\nFAILED b\n", true, 1,
		},
		"a traced script": {
			"+ echo N start\nN start\nPASSED a\n+ echo\n\n+ echo N end 0\nN end 0\nafter\n",
			"N start\nPASSED a\n+ echo\n\n+ echo N end 0", true, 0,
		},
		"markers of a program": {
			">>>>> Start Test Output\na\n>>>>> End Test Output\nb\n>>>>> End Test Output\n",
			"\na\n>>>>> End Test Output\nb\n", true, 7,
		},
		"no end":   {">>>>> Start Test Output\nPASSED a\n", "\nPASSED a\n", false, 7},
		"no start": {"PASSED a\n", "", false, 7},
	} {
		t.Run(name, func(t *testing.T) {
			status := 7
			tests, ended := between([]byte(c.log), "N", &status)
			if string(tests) != c.want || ended != c.ended || status != c.status {
				t.Errorf("%q %v %d", tests, ended, status)
			}
		})
	}
}

func FuzzLogsOfTests(f *testing.F) {
	f.Add("pytest_options", "PASSED a[/b/c]\nFAILED")
	f.Add("django", "a ... ok\nok\nFAIL: b")
	f.Add("tap", "ok 1 - a # SKIP\nnot ok 2")
	f.Fuzz(func(_ *testing.T, parser, log string) { parseLog(parser, log) })
}
