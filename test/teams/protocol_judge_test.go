package teams

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
)

// TestAnAgentOfTheProtocolCanJudge: its own tools for writing are offered to its model, and refused
// when it asks for permission; what a command tries is refused by the sandbox.
func TestAnAgentOfTheProtocolCanJudge(t *testing.T) {
	t.Parallel()
	if !sandbox.DetectBwrap(t.Context()).Bwrap.OK {
		testenv.Missing(t, "bubblewrap, which keeps the work read-only")
	}
	m := gather(t, judgement, "opencode")
	work := filepath.Join(m.dir, "judged")
	for name, content := range planted("PLANTED") {
		m.write(t, filepath.Join("judged", name), strings.ReplaceAll(content, "$WORK", work))
	}
	before := filesIn(t, work)
	m.hold(t, "judge", "--agent", "opencode", "--model", "scripted-model", "--task-text", "hello.txt must greet.",
		"--output", filepath.Join(m.dir, "trace.ndjson"), "--session-timeout", patience, "--cwd", "judged")
	m.check(t, map[string]string{"judge": "opencode"}, nil)
	if diff := cmp.Diff(before, filesIn(t, work)); diff != "" {
		t.Errorf("the work has changed:\n%s", diff)
	}
	if asked := m.asked(); !strings.Contains(asked, "hello, world") || !strings.Contains(asked, "tried 42 times") {
		t.Errorf("the judge did not see the work\n%s", m.tail())
	}
}
