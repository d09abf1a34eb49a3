package experiment

import (
	"strings"
	"testing"
	"time"
)

// What cannot have a directory is refused before anything is paid.
func TestCellsWithoutADirectoryAreRefused(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		strings.Repeat("i", 200): "",
		strings.Repeat("i", 240): "whose name has 254 bytes, more than 240",
		strings.Repeat("/", 80):  "give the task or the arm a shorter name",
	} {
		t.Run(id, func(t *testing.T) {
			plan := planOf(t, 1, 1, "an-arm-name")
			plan.Tasks[0].ID = id
			err := plan.Seal()
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%.10s: %v, want %q", id, err, want)
			}
		})
	}
}

// Whatever decides how far an agent gets is planned, and named in words where a later command would
// change it.
func TestWhatDecidesHowFarAnAgentGetsIsPlanned(t *testing.T) {
	for want, change := range map[string]func(*Plan){
		"what the gateway does to model calls: they pass as they are, now tools of the vendor are removed": func(p *Plan) {
			p.Gateway, p.Policy = "a38f0d0ba74c2971", "tools of the vendor are removed"
		},
		"bytes that an agent may print: as many as usual, now 1048576": func(p *Plan) { p.MaxOutput = 1 << 20 },
		"timeout of the agent: 0s, now 1s":                             func(p *Plan) { p.AgentTimeoutMs = 1000 },
		"network: as the tasks say, now host":                          func(p *Plan) { p.Network = "host" },
		"judge: none, now codex with gpt-5, 3 votes": func(p *Plan) {
			p.Judge = PlannedJudge{Agent: "codex", Model: "gpt-5", Votes: 3}
		},
		"isolation: as the tasks say, now none":  func(p *Plan) { p.Isolation = "none" },
		"budget of a cell: none, now $1.5, 1m0s": func(p *Plan) { p.Cell = Budget{USD: 1.5, Wall: time.Minute} },
		"arm control-shadow: new, and controls run beside the other arms from the first run on": func(p *Plan) {
			p.Arms = append(p.Arms, PlannedArm{Arm: Arm{Name: ControlShadow}})
		},
	} {
		t.Run(want, func(t *testing.T) {
			begun, wanted := &Plan{Runs: 1}, &Plan{Runs: 1}
			change(wanted)
			if changes, _ := begun.differences(wanted); len(changes) != 1 || changes[0] != want {
				t.Errorf("%q, want %q", changes, want)
			}
			if begun.identity() == wanted.identity() {
				t.Errorf("the id stays the same: %s", want)
			}
		})
	}
	old, now := &Plan{Gateway: "a38f0d0ba74c2971"}, &Plan{Gateway: "a38f0d0ba74c2971", Policy: "in words"}
	if changes, _ := old.differences(now); len(changes) > 0 || old.identity() != now.identity() {
		t.Errorf("an experiment of an earlier version does not continue: %q", changes)
	}
}
