package testenv

import (
	"fmt"
	"strings"
	"testing"
)

// recorder stands in for a test and keeps how it was ended.
type recorder struct {
	testing.TB
	ended string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, args ...any) {
	r.ended = "skip " + fmt.Sprintf(format, args...)
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.ended = "fail " + fmt.Sprintf(format, args...)
}

func TestMissingSkipsOnADevelopersMachineAndFailsInCI(t *testing.T) {
	for ci, want := range map[string]string{"": "skip ", "1": "skip ", "true": "fail "} {
		t.Run(ci, func(t *testing.T) {
			t.Setenv("CI", ci)
			r := &recorder{TB: t}
			Missing(r, "the %s", "thing")
			if !strings.HasPrefix(r.ended, want) || !strings.Contains(r.ended, "the thing") {
				t.Errorf("CI=%q ended the test with %q, want it to start with %q", ci, r.ended, want)
			}
		})
	}
}

func TestNeedToolFindsWhatIsInPath(t *testing.T) {
	if path := NeedTool(t, "go"); path == "" {
		t.Error("go has no path")
	}
	r := &recorder{TB: t}
	t.Setenv("CI", "true")
	if NeedTool(r, "no-such-program-anywhere"); !strings.Contains(r.ended, "no-such-program-anywhere") {
		t.Errorf("a missing program ended the test with %q", r.ended)
	}
}
