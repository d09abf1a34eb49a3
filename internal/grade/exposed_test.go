package grade_test

import (
	"testing"

	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/testenv"
)

// Lint tries whether hidden files can be read from a program under test, and finds none.
func TestNoHiddenFileIsExposedToAProgramThatIsNotTrusted(t *testing.T) {
	b := hookBench(t, answerHook, files{"tests/x.test.js": "require('node:test')('x', () => {});\n"})
	if b.ws.Isolation != "bwrap" {
		testenv.Missing(t, "isolation with bubblewrap")
	}
	exposed, err := grade.Exposed(t.Context(), b.config)
	if len(exposed) > 0 || err != nil {
		t.Errorf("%q, %v", exposed, err)
	}
}
