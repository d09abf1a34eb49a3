package benchmarkcli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fit-eval/fit/ledger"
)

// Without a plan nobody knows whether a run is missing: no gate passes, and nothing is claimed.
func TestAGateNeedsThePlan(t *testing.T) {
	c := newCommand(t)
	c.ledgerOf("runs", "r", 12, map[string]string{"a": "FFF", "b": "PPP"})
	c.ledgerOf("passing", "r", 12, map[string]string{"b": "PPP"})
	c.want(0, "report", "--input", "passing", "--all-pass")
	c.want(1, "compare", "runs", "--fail-on", "improved")
	for _, dir := range []string{"runs", "passing"} {
		if err := os.Remove(filepath.Join(c.dir, dir, "plan.json")); err != nil {
			t.Fatal(err)
		}
	}
	c.want(1, "report", "--input", "passing", "--all-pass")
	c.contains(c.stderr, "there is no plan.json beside the results")
	c.want(1, "report", "--input", "passing", "--min-pass-rate", "0.1")
	c.want(0, "compare", "runs")
	c.contains(c.stdout, "Observed (not one experiment): there is no plan.json beside the results")
	c.want(1, "compare", "runs", "--fail-on", "regressed")
}

func TestAGateNeedsAVerdict(t *testing.T) {
	c := newCommand(t)
	c.ledgerOf("runs", "r", 12, map[string]string{"a": "P"})
	c.reseal(filepath.Join(c.dir, "runs", "results.jsonl"), func(records []ledger.Record) {
		for i := range records {
			records[i].Verdict, records[i].Grade, records[i].ErrorClass = ledger.Error, nil, ledger.ErrorProvider
		}
	})
	c.want(1, "report", "--input", "runs", "--min-pass-rate", "0")
	c.contains(c.stderr, "no run of arm a has a verdict")
}

// retry puts a failed attempt before the runs of an arm that a test names. The agent had begun to
// work, the provider failed, and the gateway confirms it.
func (c *command) retry(dir, arm string, turns int, which func(r *ledger.Record) bool) {
	c.t.Helper()
	path := filepath.Join(c.dir, dir, "results.jsonl")
	contents, err := ledger.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	var records []ledger.Record
	for _, r := range contents.Records {
		if r.Arm == arm && which(&r) {
			first := r
			first.Verdict, first.Grade, first.ErrorClass = ledger.Error, nil, ledger.ErrorProvider
			first.Final, first.Turns = false, turns
			r.Attempt = 2
			records = append(records, first)
		}
		records = append(records, r)
	}
	c.save(path, records)
}

// A gate counts runs that were drawn again as it counts missing ones.
func TestAGateDoesNotRestOnRetries(t *testing.T) {
	c := newCommand(t)
	c.ledgerOf("runs", "r", 20, map[string]string{"a": "PP"})
	c.want(0, "report", "--input", "runs", "--all-pass", "--min-pass-rate", "0.7")
	c.retry("runs", "a", 3, func(r *ledger.Record) bool { return r.RunIndex == 0 })
	c.want(1, "report", "--input", "runs", "--min-pass-rate", "0.7")
	c.contains(c.stderr, "20 retried after an error")
	c.want(1, "report", "--input", "runs", "--all-pass")
}

// Calls that the provider failed, and that the agent repeated, are answers that were drawn again.
func TestAGateDoesNotRestOnRepeatedCalls(t *testing.T) {
	c := newCommand(t)
	c.ledgerOf("runs", "r", 20, map[string]string{"a": "PP"})
	path := filepath.Join(c.dir, "runs", "results.jsonl")
	contents, err := ledger.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range contents.Records {
		contents.Records[i].FailedCalls = 1 - contents.Records[i].RunIndex
	}
	c.save(path, contents.Records)
	c.want(1, "report", "--input", "runs", "--min-pass-rate", "0.7")
	c.contains(c.stderr, "is 0.299 (of 40 runs 0 missing, 20 retried after an error or a failed model call; they count")
	c.want(0, "report", "--input", "runs", "--min-pass-rate", "0.25")
	c.want(1, "report", "--input", "runs", "--all-pass")
	c.contains(c.stderr, "40 of 40 runs of arm a passed, 0 missing, 20 retried after an error or a failed model call")
}

// The provider fails on the bad draws of b, which are drawn again until they pass.
func TestNoClaimRestsOnRetriesAfterTheAgentHadBegun(t *testing.T) {
	c := newCommand(t)
	c.ledgerOf("runs", "r", 20, map[string]string{"a": "PF", "b": "PP"})
	c.want(1, "compare", "runs", "--fail-on", "improved")
	bad := func(r *ledger.Record) bool { return r.RunIndex == 1 }
	c.retry("runs", "b", 3, bad)
	c.want(0, "compare", "runs")
	c.contains(c.stdout, "Not proven", "20 retried runs could change the answer",
		"retried after the agent had begun to work: 0 of 40 runs of a, 20 of 40 of b (Fisher's p = 7.8e-08)",
		"unequal shares of the arms' runs were retried")
	c.want(1, "compare", "runs", "--fail-on", "regressed") // who fails in the right way passes no gate
	c.contains(c.stderr, "withheld because 20 retried runs could change the answer")
	c.want(0, "report", "--input", "runs", "--format", "text")
	c.contains(c.stdout, "40 of 40 runs passed, 20 retried")

	// an agent that had not begun has drawn nothing
	c.ledgerOf("early", "r", 20, map[string]string{"a": "PF", "b": "PP"})
	c.retry("early", "b", 0, bad)
	c.want(1, "compare", "early", "--fail-on", "improved")
}

// Running only the tasks again that failed proves nothing about the others.
func TestTasksOfOneDirectoryOnlyAreBounded(t *testing.T) {
	c := newCommand(t)
	c.ledgerOf("all", "r", 40, map[string]string{"a": "P"})
	failed := func(r *ledger.Record) bool { return r.TaskID >= "t21" }
	c.reseal(filepath.Join(c.dir, "all", "results.jsonl"), func(records []ledger.Record) {
		for i := range records {
			if failed(&records[i]) {
				records[i].Verdict, records[i].Grade.Verdict = ledger.Fail, ledger.Fail
			}
		}
	})
	var records []ledger.Record
	for i := 21; i < 40; i++ {
		verdict := ledger.Pass
		if i%2 == 0 {
			verdict = ledger.Fail
		}
		records = append(records, ledger.Record{
			TaskID: fmt.Sprintf("t%02d", i), Attempt: 1, Arm: "a", ArmHash: "b",
			FamilyRevision: "r", Verdict: verdict, Final: true, Agent: "builtin",
			Grade: &ledger.Grade{Verdict: verdict, Healthy: true},
		})
	}
	c.planned("again", "r", records)
	c.save(filepath.Join(c.dir, "again", "results.jsonl"), records)
	c.want(0, "compare", "all", "again")
	c.contains(c.stdout, "no claim because: exclusion rates differ by 52.5 points",
		"worst/best case over 21 uncertain runs: difference -27.5 to +25.0 points")
	c.want(1, "compare", "all", "again", "--fail-on", "regressed", "--allow", "historical")
	c.contains(c.stderr, "withheld because exclusion rates differ by 52.5 points; run the same tasks on both")
}

// A run that a limit ended says nothing about what it would have taken.
func TestRunsThatEndedAtALimitAreCounted(t *testing.T) {
	c := newCommand(t)
	c.ledgerOf("runs", "r", 12, map[string]string{"a": "PP", "b": "PP"})
	c.reseal(filepath.Join(c.dir, "runs", "results.jsonl"), func(records []ledger.Record) {
		for i := range records {
			r := &records[i]
			if r.Turns = 4; r.Arm == "b" {
				r.Turns = 6
				if r.RunIndex == 1 {
					r.Outcome = "max_turns"
				}
			}
		}
	})
	c.want(0, "compare", "runs")
	c.contains(c.stdout, "b: 12 runs ended at a limit: max_turns 12", "turns: ×1.50",
		"(censored: 12 runs ended at a limit and would have taken more")
	c.want(0, "report", "--input", "runs", "--format", "text")
	c.contains(c.stdout, "12 runs ended at a limit: max_turns 12")

	c.ledgerOf("long", "r", 12, map[string]string{"a": "PP"})
	c.ledgerOf("short", "r", 12, map[string]string{"a": "PP"})
	path := filepath.Join(c.dir, "short", "plan.json")
	plan, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	plan = bytes.Replace(plan, []byte(`"runs":`), []byte(`"agentTimeoutMs":60000,"runs":`), 1)
	if err := os.WriteFile(path, plan, 0o600); err != nil {
		t.Fatal(err)
	}
	c.want(0, "compare", "long", "short")
	c.contains(c.stdout, "the two had different limits: no limit and 1m0s")
}

// save writes a ledger.
func (c *command) save(path string, records []ledger.Record) {
	c.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		c.t.Fatal(err)
	}
	file, err := os.Create(path)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range records {
		records[i].Origin = ""
	}
	if err := ledger.Write(file, slices.Clone(records)); err != nil {
		c.t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		c.t.Fatal(err)
	}
}
