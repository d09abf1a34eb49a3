package foreign

import (
	"strings"

	"github.com/fit-eval/fit/ledger"
)

// Runs are the results of another harness, in a fifth of the memory that their records take.
type Runs struct {
	list       []run
	experiment string
	// prefixes tell tasks of several sets apart; where there is one, they go.
	prefixes    map[string]bool
	armPrefixes map[string]bool // the same of arms
}

// run is what another harness can say of a run. What it does not say stays empty.
type run struct {
	task, arm, model, agent, agentVersion string

	index    int
	verdict  string
	message  string // why it has no outcome
	score    *float64
	content  string // the digest of its task
	trace    string
	outcome  string // how its agent ended
	notes    []string
	turns    int
	startMs  int64
	endMs    int64
	phaseMs  map[string]int64
	tokens   *ledger.UsageJSON
	cost     *float64
	from     *ledger.Imported
	duration int64 // in milliseconds
}

// Len returns the number of runs.
func (all *Runs) Len() int { return len(all.list) }

// Records returns the records of all runs.
func (all *Runs) Records() []ledger.Record {
	records := make([]ledger.Record, all.Len())
	for i := range records {
		records[i] = all.Record(i)
	}
	return records
}

// Record returns the record of a run.
func (all *Runs) Record(i int) ledger.Record {
	r := all.list[i].record()
	r.Experiment, r.TaskID, r.Arm = all.experiment, without(all.prefixes, r.TaskID), without(all.armPrefixes, r.Arm)
	return r
}

func (r *run) record() ledger.Record {
	found := ledger.Record{
		Version:        ledger.Version,
		TaskID:         r.task,
		Arm:            r.arm,
		RunIndex:       r.index,
		Attempt:        1,
		Final:          true,
		Verdict:        r.verdict,
		Score:          r.score,
		CostUSD:        r.cost,
		Turns:          r.turns,
		Model:          ledger.Models{Agent: r.model},
		Agent:          r.agent,
		AgentVersion:   r.agentVersion,
		Outcome:        r.outcome,
		DurationMs:     r.duration,
		StartMs:        r.startMs,
		EndMs:          r.endMs,
		PhaseMs:        r.phaseMs,
		Tokens:         r.tokens,
		Digests:        ledger.Digests{Visible: r.content},
		AgentTracePath: r.trace,
		Notes:          r.notes,
		Treatment:      notRun,
		Imported:       r.from,
	}
	switch r.verdict {
	case ledger.Error:
		found.ErrorClass, found.ErrorMessage = ledger.ErrorImported, r.message
	case ledger.Pass:
		found.Grade = passed
	default:
		found.Grade = notPassed
	}
	return found
}

// notRun is what is known about what models were given.
var notRun = &ledger.Treatment{Unknown: "fit did not run it"}

var (
	passed    = &ledger.Grade{Verdict: ledger.Pass, GatesPass: true, Healthy: true}
	notPassed = &ledger.Grade{Verdict: ledger.Fail, GatesPass: true, Healthy: true}
)

// without takes a prefix off that all names have.
func without(prefixes map[string]bool, name string) string {
	for prefix := range prefixes {
		if len(prefixes) == 1 {
			return strings.TrimPrefix(name, prefix)
		}
	}
	return name
}

// phaseAgent is the phase of a run in which its agent worked.
const phaseAgent = "agent"

// agentTook notes how long the agent worked, in milliseconds; 0 is unknown.
func (r *run) agentTook(ms int64) {
	if ms > 0 {
		r.phaseMs = map[string]int64{phaseAgent: ms}
	}
}

// ours is what a result of another format holds of ours beside its own members.
type ours struct {
	AgentMs int64 `json:"fitAgentMs,omitempty"`
}

// oursOf is what a record has that the members of other formats do not hold; nil if there is none.
func oursOf(r *ledger.Record) *ours {
	if ms := r.PhaseMs[phaseAgent]; ms > 0 {
		return &ours{ms}
	}
	return nil
}

// cell is what no other run of the source is.
func (r *run) cell() ledger.Cell { return ledger.Cell{Arm: r.arm, TaskID: r.task, RunIndex: r.index} }
