package experiment

import (
	"cmp"
	"time"

	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/task"
)

// Setup is an experiment as a person describes it: a family, arms, and how often.
type Setup struct {
	Family *task.Family
	// Only names the tasks to run; empty is all. Selected says how they were chosen.
	Only     []string
	Selected string
	Arms     []Arm
	Runs     int
	Seed     uint64
	// Shard is the part to run.
	Shard     Shard
	Isolation string // "none", "bwrap", or empty for what the task says or the best that works
	// Network is what agents reach: "host", "model" or "none"; empty for what the task says.
	Network    string
	CellBudget Budget
	// DollarBudget says that the experiment or its arms have a budget in dollars, for which every
	// model needs a price.
	DollarBudget bool
	// AgentTimeout limits the agent in addition to the task's limit; 0 is no limit.
	AgentTimeout time.Duration
	// StopEarly ends the experiment as soon as its two arms can be distinguished; nil runs it to
	// its end.
	StopEarly *StopRule
	// Question is what the experiment is to answer.
	Question Question
	// Judge judges tasks that have a judge; an empty Agent is the agent of the first arm.
	Judge JudgeConfig
	// DefaultMaxTurns limits the turns of arms that set no limit, if their agent supports it; 0 is
	// no limit.
	DefaultMaxTurns int
	// NodeModules is a directory that becomes node_modules in every working directory; empty: none.
	NodeModules string
	// Skills are the skills of arms that name none, as Arm.Skills; empty: the family's.
	Skills string
	// Context is what the agents of arms that do not say it read of their projects; empty: what the
	// tasks say.
	Context string
	Tools   map[string]string
	// Policy says what happens to model calls. Replay is a run directory.
	gateway.Policy
	// KeepRaw leaves traces as they were written instead of packing them.
	KeepRaw bool
	// Commands are names under which hooks find the running program, such as fit-trace.
	Commands []string
}

// Prepared is an experiment that is ready to run: a setup in which every choice is made, and its
// plan. It is plain data. Another process can read it from JSON, and then needs the files of the
// family and the skills at the same paths. It holds the values of the arms' variables, so a file
// with it is as secret as they are.
type Prepared struct {
	Setup
	Plan *Plan
	// Brings are what arms bring to their agents, and the family to all, by arm.
	Brings map[string][]Bring
	// ProjectPrograms are the arms that asked for context: project, so that programs of the project
	// may run without isolation.
	ProjectPrograms []string
	// SkillHashes are the digests of the staged skills, by arm.
	SkillHashes map[string]string
}

// Same returns an arm that is the baseline under another name, with the same model; nil where every
// arm differs from it.
func (p *Prepared) Same() *Arm {
	baseline := &p.Arms[0]
	for i := range p.Arms[1:] {
		other := &p.Arms[i+1]
		if other.Name != ControlShadow && other.Hash == baseline.Hash && other.ModelURL == baseline.ModelURL {
			return other
		}
	}
	return nil
}

// JudgeConfig configures the judge, for tasks that have one. The same judge judges all arms.
type JudgeConfig struct {
	Agent string
	Model string
	// Default is the model that the agent asks where Model is empty; empty if only the agent knows.
	Default  string
	ModelURL string
	// Votes is how many times every attempt is judged; the majority decides. It is odd; 0 is the
	// task's number, else one.
	Votes int
	// SameFamily allows a judge of the same vendor as some of the arms, and not as others.
	SameFamily bool
}

// Name names the judge for people.
func (c JudgeConfig) Name() string {
	switch {
	case c.Model != "":
		return c.Agent + " with " + c.Model
	case c.Default != "":
		return c.Agent + " with its default model " + c.Default
	}
	return c.Agent + " with the model that it chooses itself (name one with --judge-model)"
}

// VotesOn returns how many votes decide about a task: the command's number, else the task's, else
// one.
func (c JudgeConfig) VotesOn(t *task.Task) int {
	return cmp.Or(c.Votes, t.Settings.JudgeVotes, 1)
}
