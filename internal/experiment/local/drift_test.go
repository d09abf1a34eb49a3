package local

import (
	"os"
	"testing"

	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/agent/command"
	"github.com/fit-eval/fit/internal/experiment"
)

// TestAScriptThatChangesBetweenCellsShows: every record has the agent's version and scripts as they
// were in its own run.
func TestAScriptThatChangesBetweenCellsShows(t *testing.T) {
	script := agenttest.Script(t, `echo '{"type":"text","text":"Done."}'`)
	mine := command.New(command.Entry{ID: "mine", Command: "sh " + script, Events: "ndjson"})
	tr := preparedOn(t, installed(t, mine), oneTask(t, nil), experiment.Setup{
		Arms: []experiment.Arm{{Name: "default", Agent: "mine"}},
		Runs: 3,
	})
	dir, executor := tr.open(t, t.TempDir())
	var versions, scripts []string
	for i, cell := range dir.Plan.Cells() {
		if i == 2 {
			if err := os.WriteFile(script, []byte("echo '{\"type\":\"text\",\"text\":\"Done, too.\"}'\n"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		r, err := executor.Execute(t.Context(), cell, 1)
		if err != nil {
			t.Fatal(err)
		}
		versions, scripts = append(versions, r.AgentVersion), append(scripts, r.AgentScripts[script])
	}
	if versions[0] != versions[1] || versions[1] == versions[2] || scripts[0] == "" || scripts[0] != scripts[1] ||
		scripts[1] == scripts[2] {
		t.Errorf("versions %q, scripts %q", versions, scripts)
	}
}
