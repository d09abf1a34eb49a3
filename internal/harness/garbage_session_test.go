package harness_test

import (
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/harness"
)

// TestTheRubbishOfAnAgentIsBoundedAndReported lets a participant print much more than its turn may
// keep. The trace holds a part of it, says so, and the session goes on.
func TestTheRubbishOfAnAgentIsBoundedAndReported(t *testing.T) {
	rubbish := `{"type":"raw","text":"` + strings.Repeat("x", 1<<20) + `"}`
	ready := make(chan struct{})
	close(ready)
	query := talkers(false, ready)
	var out buffer
	f, err := harness.NewFacilitator(harness.FacilitatorConfig{
		FacilitatorCwd: t.TempDir(), AgentConfigs: []harness.AgentConfig{{Name: "p"}}, Output: &out,
		NewAgent: func(cfg harness.AgentConfig) (agent.Agent, error) {
			made, err := query(cfg)
			if w := made.(*talker); cfg.Name == "p" {
				answer := w.act
				w.act = func(d *harness.Dispatcher, prompt string) error {
					for range 20 {
						w.events([]byte(rubbish))
					}
					return answer(d, prompt)
				}
			}
			return made, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := f.Run(t.Context(), "go")
	if err != nil || !result.Success {
		t.Fatalf("%+v, %v", result, err)
	}
	text := out.String()
	if len(text) > 5<<20 {
		t.Errorf("the trace has %d bytes", len(text))
	}
	warnings := ofType(lines(t, text), "warning")
	if len(warnings) != 1 || warnings[0]["agent"] != "p" ||
		!strings.Contains(warnings[0]["text"].(string), "more than 4 MiB that are not events in one turn") {
		t.Errorf("warnings: %v", warnings)
	}
}
