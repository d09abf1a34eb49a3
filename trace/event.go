package trace

// Orchestrator is the source of events that the harness itself produces.
const Orchestrator = "orchestrator"

// The types of the orchestrator's events.
const (
	TypeMeta              = "meta"
	TypeSessionStart      = "session_start"
	TypeAgentStart        = "agent_start"
	TypeAgentEnd          = "agent_end"
	TypeSystemPrompt      = "system_prompt"
	TypePrompt            = "prompt"
	TypeProtocolViolation = "protocol_violation"
	TypeLeadTurnLimit     = "lead_turn_limit"
	TypeAdvisorConsult    = "advisor_consult"
	TypeMessage           = "message"
	TypeDelivery          = "delivery"
	TypeReminder          = "reminder"
	TypeCancel            = "cancel"
	TypeTurnStart         = "turn_start"
	TypeTurnEnd           = "turn_end"
	TypeRecovered         = "recovered"
	TypeResumed           = "resumed"      // a process continues a session that another began
	TypeCallRefused       = "call_refused" // a call in a participant's name that another process made
	TypeModelCall         = "model_call"   // a call of a participant's model, as the gateway saw it
	TypeHostReached       = "host_reached" // an agent without the machine's network reached a host
	TypeHostRefused       = "host_refused" // and was refused one
	TypeSummary           = "summary"
)

// The types of events that stand for output of an agent that was not an event.
const (
	TypeRaw     = "raw"     // a line that is not a JSON object: {"type":"raw","text":…}
	TypeStderr  = "stderr"  // a line of standard error: {"type":"stderr","text":…}
	TypeSkipped = "skipped" // a line too long to keep: {"type":"skipped","bytes":…,"reason":…}
	TypeDropped = "dropped" // lines that only repeat what follows whole: {"type":"dropped","count":…,"of":…}
)

// FormatVersion is the version of the trace format that this package writes; see the promise in the
// package comment.
const FormatVersion = 1

// SessionStart is the first line of a session.
type SessionStart struct {
	Type   string `json:"type"`
	Mode   string `json:"mode,omitempty"` // run, supervise, facilitate, discuss, judge
	Format int    `json:"format,omitempty"`
	// Isolation says what separated the agents from the rest of the machine: bwrap or none, and
	// what it left open.
	Isolation string `json:"isolation,omitempty"`
	// Network is what the agents reached: host, model or none.
	Network string `json:"network,omitempty"`
	// Context is what the agent of a run read of its project: project or none. In a session of
	// several agents each member has its own.
	Context string `json:"context,omitempty"`
}

// HostEvent says that an agent asked for a host. Only the first request for each host is recorded.
type HostEvent struct {
	Type string `json:"type"` // TypeHostReached or TypeHostRefused
	Host string `json:"host"` // with its port
}

// AgentStart opens the lane of one agent: its name in the session, and what runs it.
type AgentStart struct {
	Type     string `json:"type"`
	Agent    string `json:"agent"`             // the participant's name, which is also its lane
	Runtime  string `json:"runtime,omitempty"` // the registered agent that runs it
	Version  string `json:"version,omitempty"`
	Protocol string `json:"protocol,omitempty"` // the dialect its lane speaks
	Model    string `json:"model,omitempty"`
	// KeyVisible says that the agent's process could read the credential it used.
	KeyVisible bool `json:"keyVisible,omitempty"`
	// Auth is how the agent was logged in, where there is a choice.
	Auth string `json:"auth,omitempty"`
	// Gateway says whether its model calls went through the gateway: on or off, and then
	// GatewayReason why.
	Gateway       string `json:"gateway,omitempty"`
	GatewayReason string `json:"gatewayReason,omitempty"`
	// ProjectPrograms are the files of the project whose programs the agent could run, such as
	// hooks and tool servers.
	ProjectPrograms []string `json:"projectPrograms,omitempty"`
}

// AgentEnd says how the process of an agent was started and how it ended. Teams write the same type
// with a reason instead, when a participant has left the session.
type AgentEnd struct {
	Type     string   `json:"type"`
	Agent    string   `json:"agent"`
	ExitCode int      `json:"exitCode"`
	Signal   string   `json:"signal,omitempty"`
	TimedOut bool     `json:"timedOut"`
	Argv     []string `json:"argv,omitempty"`
	// Binary is the program, and BinarySHA256 its content, where they are known.
	Binary       string `json:"binary,omitempty"`
	BinarySHA256 string `json:"binarySha256,omitempty"`
	Version      string `json:"version,omitempty"`
	Auth         string `json:"auth,omitempty"`
	StartMs      int64  `json:"startMs"`
	EndMs        int64  `json:"endMs"`
}

// SystemPrompt records text that the harness injected into an agent's system prompt.
type SystemPrompt struct {
	Type    string `json:"type"`
	Agent   string `json:"agent"`
	Source  string `json:"source"` // profile, session_protocol, advisor, append
	Label   string `json:"label"`
	Content string `json:"content"`
}

// Prompt records what an agent was asked to do.
type Prompt struct {
	Type  string `json:"type"`
	Agent string `json:"agent"`
	Text  string `json:"text"`
}

// Summary is the last line of every session.
type Summary struct {
	Type    string `json:"type"`
	Success bool   `json:"success"`
	Verdict string `json:"verdict,omitempty"`
	Turns   int    `json:"turns"`
	Summary string `json:"summary"`
	// Reason distinguishes the ways a run can end: success, error, max_turns, budget, timeout,
	// interrupted, no_result, output_limit, auth.
	Reason  string   `json:"reason,omitempty"`
	CostUSD *float64 `json:"costUsd,omitempty"`
}

// Recovered notes that an earlier writer was cut off; the torn line before it stays in the file.
type Recovered struct {
	Type      string `json:"type"`
	TornBytes int64  `json:"tornBytes"`
}
