package harness

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/profile"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/trace"
)

// Mode is the way a team works together.
type Mode string

// The modes that share this package's loop. A run, the one-shot mode of a single agent, does not
// use it.
const (
	ModeSupervise  Mode = "supervise"
	ModeFacilitate Mode = "facilitate"
	ModeDiscuss    Mode = "discuss"
	ModeJudge      Mode = "judge"
)

// traits holds what the loop must know about a mode.
type traits struct {
	lead           string // the name of its lead, which is reserved
	violationTag   string // how protocol violations name the mode
	failureVerdict string // of a session that ends without a conclusion; a judge that does not conclude has none
	turns          int    // of the model in one call of any member, by default
}

func (m Mode) traits() traits {
	switch m {
	case ModeSupervise:
		return traits{"supervisor", "supervised", VerdictFailure, 200}
	case ModeFacilitate:
		return traits{"facilitator", "facilitated", VerdictFailure, 20}
	case ModeDiscuss:
		return traits{"lead", "discussion", VerdictFailed, 40}
	default:
		return traits{"judge", "judge", "", 25}
	}
}

// DefaultTurns is how many turns of the model any member may take in one call where neither its
// config nor its profile sets a limit.
func (m Mode) DefaultTurns() int { return m.traits().turns }

// supervisedName is the name of the one participant of supervise.
const supervisedName = "agent"

// AgentConfig is one member of a session: a participant, or the lead. The profile fills the fields
// that are empty.
type AgentConfig struct {
	Name         string `json:"name"`
	Role         string `json:"role,omitempty"`
	AgentProfile string `json:"agentProfile,omitempty"` // the name of a profile
	// Agent is the id of the registered agent that plays the member, and Model its model; empty is
	// the caller's default.
	Agent           string   `json:"agent,omitempty"`
	Model           string   `json:"model,omitempty"`
	Tools           []string `json:"tools,omitempty"` // empty is the default of the member's role
	DisallowedTools []string `json:"disallowedTools,omitempty"`
	// Tools were not asked for; set where the default of the role is
	ToolsByRole bool `json:"toolsByRole,omitempty"`
	// model turns in one call; 0 is the default of the role, -1 no limit
	MaxTurns int    `json:"maxTurns,omitempty"`
	Cwd      string `json:"cwd,omitempty"`
	// Context says what the agent reads of its directory: agent.ContextProject or
	// agent.ContextNone; empty is that of Options.Base. A judge reads nothing, and neither does a
	// lead whose directory and a participant's lie in one another: it would obey the work.
	Context string `json:"context,omitempty"`
	// directories that its agent sees in a sandbox in which it can change nothing; empty is no
	// sandbox
	ReadOnly   []string          `json:"readOnly,omitempty"`
	Skills     []string          `json:"skills,omitempty"`
	Amend      string            `json:"amend,omitempty"` // added at the end of the system prompt
	Limits     Limits            `json:"limits,omitzero"` // of this member over the whole session
	MCPServers []agent.MCPServer `json:"-"`               // tool servers beyond the session's own
	// Settings, Effort and Temperature are those of agent.Config; empty is what Options.Base says.
	Settings    string   `json:"-"`
	Effort      string   `json:"-"`
	Temperature *float64 `json:"-"`
	// the agent's own directory; empty is one below Options.HomeDir
	Home   string               `json:"home,omitempty"`
	System profile.SystemPrompt `json:"-"` // composed from the profile
	// set when NewAgent is called, for agents that live in this process
	Dispatcher *Dispatcher `json:"-"`

	consultedBy string // of an advisor
}

// AgentFunc returns the agent that plays a member. It is called when the member gets its first
// message and when a round that a crash interrupted is accounted for. Calls never overlap.
type AgentFunc func(AgentConfig) (agent.Agent, error)

// Limits bound a session or a member of it. Zero fields do not limit a member; those of a session
// have defaults, and negative ones mean no limit.
type Limits struct {
	// of a session by the wall clock, of a member while it is in rounds
	Timeout time.Duration `json:"timeoutNs,omitempty"`
	Turns   int           `json:"turns,omitempty"` // prompts given to agents
	Tokens  int64         `json:"tokens,omitempty"`
	CostUSD float64       `json:"costUsd,omitempty"`
}

// ErrorPolicy says what happens when an agent fails in a round.
type ErrorPolicy struct {
	// Retries is how often a failed round is repeated; 0 means once, -1 never.
	Retries int `json:"retries,omitempty"`
	// Backoff is the pause before a retry; 0 means one second.
	Backoff time.Duration `json:"backoffNs,omitempty"`
	// KeepGoing continues without a participant that has failed for good, and informs the members
	// that asked it something. Otherwise the session ends. A lead that fails always ends it, and so
	// does an agent that could not be run at all.
	KeepGoing bool `json:"keepGoing,omitempty"`
}

// Connector connects agents that run in other processes to the dispatcher.
type Connector interface {
	// Servers returns the tool servers of one member, for the agent that is about to play it.
	Servers(participant string, played agent.Info) ([]agent.MCPServer, error)
	// Spawner returns the spawner that must start the member's agent, so that its calls can be
	// recognised.
	Spawner(participant string, inner sandbox.ProcessSpawner) sandbox.ProcessSpawner
	// Close ends the connections after the last agent has ended.
	Close() error
}

// Options holds the settings that all modes have in common. The zero value is useful. What has a
// name in JSON is recorded, because a resumed session must know it.
type Options struct {
	// Limits bound the whole session; by default it may take 4 hours and 500 turns.
	Limits            Limits `json:"limits,omitzero"`
	ParticipantLimits Limits `json:"participantLimits,omitzero"` // of each participant without its own
	// IdleTimeout ends a round in which nothing happens for this long: no event of the agent and no
	// tool call. 0 is 30 minutes, negative none.
	IdleTimeout     time.Duration `json:"idleTimeoutNs,omitempty"`
	MaxLeadTurns    int           `json:"maxLeadTurns"`            // 0 is DefaultLeadTurns
	AskDeadline     time.Duration `json:"askDeadlineNs,omitempty"` // of asks that do not say their own; 0 is none
	MaxMessageBytes int           `json:"maxMessageBytes"`         // 0 is 1 MiB
	Errors          ErrorPolicy   `json:"errors"`
	Advisor         AdvisorConfig `json:"advisor,omitzero"`

	// BatchWindow is how long a lead that has something to read waits for more while others are at
	// work, so that answers that arrive together wake it once; 0 is 20 milliseconds, negative none.
	BatchWindow time.Duration `json:"batchWindowNs"`

	// LeadGrace is how long a lead may continue talking after its terminal call; 0 is a minute.
	LeadGrace time.Duration `json:"leadGraceNs"`
	// FinalTurnGrace is how long a participant has for a last message that was on its way when the
	// session was concluded; 0 is two seconds.
	FinalTurnGrace time.Duration `json:"finalTurnGraceNs"`
	// StopGrace is how long an agent that was cancelled may take to stop before it is given up; 0
	// is ten seconds.
	StopGrace time.Duration `json:"stopGraceNs"`

	// HomeDir is where members keep their conversations, each in a directory of its name. Empty is
	// a temporary directory, which is removed at the end.
	HomeDir string `json:"homeDir,omitempty"`
	// ProfilesDir is where profiles are; empty is .claude/agents below the lead's directory.
	ProfilesDir string `json:"profilesDir,omitempty"`
	// ToolTransport says how Connect connects agents.
	ToolTransport string `json:"toolTransport,omitempty"`

	TaskAmend string `json:"-"` // appended to the task after a blank line
	// Trace is written instead of Output if it is set. A Writer on a file locks it, and the session
	// can be resumed.
	Trace *trace.Writer `json:"-"`
	// Base is the agent configuration that every member starts from: environment, spawner,
	// isolation, endpoint, prices, and what they read of their projects.
	Base agent.Config `json:"-"`
	// DefaultAgent and DefaultModel are for participants whose config and profile name none;
	// DefaultAgent is for the lead too. They are recorded with the members, so that a resumed
	// session uses the same.
	DefaultAgent string `json:"-"`
	DefaultModel string `json:"-"`
	// DefaultCwd is the directory of participants whose config and profile name none; empty is the
	// lead's.
	DefaultCwd string `json:"-"`
	// Connect is called once per session; nil is for agents in this process, which use
	// AgentConfig.Dispatcher.
	Connect func(*Dispatcher) (Connector, error) `json:"-"`
}

// The default limits of a session: without them it could wait or spend forever.
const (
	DefaultTimeout     = 4 * time.Hour
	DefaultTurns       = 500
	DefaultLeadTurns   = 200
	DefaultIdleTimeout = 30 * time.Minute
)

// settings are the options of a session in which every choice is made.
type settings struct {
	Options
	TempHome bool `json:"tempHome,omitempty"` // HomeDir is ours to remove
}

func (o Options) settings() settings {
	o.Limits.Timeout = max(0, cmp.Or(o.Limits.Timeout, DefaultTimeout))
	o.Limits.Turns = max(0, cmp.Or(o.Limits.Turns, DefaultTurns))
	o.IdleTimeout = max(0, cmp.Or(o.IdleTimeout, DefaultIdleTimeout))
	o.MaxLeadTurns = cmp.Or(o.MaxLeadTurns, DefaultLeadTurns)
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, 1<<20)
	o.Errors.Backoff = cmp.Or(o.Errors.Backoff, time.Second)
	o.Errors.Retries = max(0, cmp.Or(o.Errors.Retries, 1))
	if o.Advisor.Model != "" {
		o.Advisor.MaxUses = cmp.Or(o.Advisor.MaxUses, DefaultAdvisorUses)
		o.Advisor.Timeout = cmp.Or(o.Advisor.Timeout, defaultAdvisorTimeout)
	}
	o.BatchWindow = cmp.Or(o.BatchWindow, 20*time.Millisecond)
	o.LeadGrace = cmp.Or(o.LeadGrace, time.Minute)
	o.FinalTurnGrace = cmp.Or(o.FinalTurnGrace, 2*time.Second)
	o.StopGrace = cmp.Or(o.StopGrace, 10*time.Second)
	return settings{Options: o}
}

// reservedNames cannot be taken by participants: they are the names of leads, of lanes that are not
// participants, and of tags.
var reservedNames = []string{
	"supervisor", "facilitator", "lead", "judge", "advisor", "orchestrator", "system",
	"shared", "human",
}

func checkNames(participants []AgentConfig) error {
	seen := map[string]bool{}
	for i, p := range participants {
		switch {
		case p.Name == "":
			return fmt.Errorf("participant %d has no name", i+1)
		case !profile.ValidName(p.Name):
			return fmt.Errorf("participant name %q: use letters, digits, dots, dashes and underscores, at most 64",
				p.Name)
		case slices.Contains(reservedNames, p.Name):
			return fmt.Errorf("participant name %q is reserved", p.Name)
		case seen[p.Name]:
			return fmt.Errorf("two participants are called %q", p.Name)
		}
		seen[p.Name] = true
	}
	return nil
}

var errNoAgentFunc = errors.New("no NewAgent: the session does not know how to make agents")
