package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fit-eval/fit/ledger"
)

// The report checks that both arms of a task ran on the same machine setup, and warns otherwise.
func TestLikeMachines(t *testing.T) {
	t.Parallel()
	records := append(armRuns("a", repeat("PF", 12)...), armRuns("b", repeat("PP", 12)...)...)
	show := func(change func(r *ledger.Record)) (*Comparison, string) {
		changed := append([]ledger.Record(nil), records...)
		for i := range changed {
			r := &changed[i]
			r.Worker, r.Host, r.Isolation, r.Agent, r.AgentVersion = "w1", "h", "bwrap", "pi", "1"
			if r.Arm == "b" {
				r.Worker = "w2"
			}
			change(r)
		}
		c := compareWith(t, nil, changed)
		var out bytes.Buffer
		if err := c.Text(&out); err != nil {
			t.Fatal(err)
		}
		return c, out.String()
	}
	c, text := show(func(*ledger.Record) {})
	const alike = "machines: 2 workers; on every task both arms ran with the same isolation and versions"
	if c.Machines == nil || c.Machines.Workers != 2 || len(c.Machines.Unlike) > 0 || !strings.Contains(text, alike) {
		t.Errorf("%+v\n%s", c.Machines, text)
	}
	c, text = show(func(r *ledger.Record) {
		if r.TaskID == "t03" && r.Arm == "b" {
			r.Isolation = "none"
		}
	})
	if want := "1 of 12 tasks: the arms ran on different machine setups, which confounds the comparison: " +
		"t03 (isolation bwrap and none)"; !strings.Contains(text, want) {
		t.Errorf("%+v\n%s", c.Machines, text)
	}
	c, text = show(func(r *ledger.Record) {
		if r.Arm == "b" {
			r.AgentVersion = "2"
		}
	})
	if want := "12 of 12 tasks: the arms ran on different machine setups, which confounds the comparison: " +
		"t00 (pi 1 and 2), t01 (pi 1 and 2), t02 (pi 1 and 2) and 9 more"; !strings.Contains(text, want) {
		t.Errorf("%+v\n%s", c.Machines, text)
	}
	// two agents have versions of their own, and one machine needs no mention
	c, text = show(func(r *ledger.Record) {
		if r.Worker = ""; r.Arm == "b" {
			r.Agent, r.AgentVersion = "codex", "7"
		}
	})
	if c.Machines != nil || strings.Contains(text, "machines") {
		t.Errorf("%+v\n%s", c.Machines, text)
	}
}
