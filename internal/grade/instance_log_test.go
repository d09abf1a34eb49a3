package grade

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The tested code can print results, too. SWE-bench takes the last line; here no later line takes a
// failure back.
func TestAFailedTestStaysFailed(t *testing.T) {
	results := parseLog("pytest", "PASSED a\nFAILED a\nPASSED a\nERROR b\nPASSED b\nPASSED c\nERROR c\n")
	want := map[string]logStatus{"a": logFailed, "b": logError, "c": logError}
	if diff := cmp.Diff(want, results.statuses); diff != "" {
		t.Error(diff)
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
