package agent

import (
	"context"
	"slices"
	"time"

	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/session"
)

// Agent starts sessions of one kind of agent.
type Agent interface {
	// Info describes the agent. It costs nothing.
	Info() Info
	// Probe finds the agent on this machine. An agent that is not installed is reported by a
	// NotFoundError, which says how to get it.
	Probe(ctx context.Context, host Host) (Installation, error)
	// Start prepares a session. Depending on the agent and on Config.OneShot the process starts now
	// or with the first prompt. A session that is resumed (Config.Resume) continues an earlier
	// conversation in a new process.
	Start(ctx context.Context, cfg Config) (Session, error)
	// Dialects are the native formats of the agent's streams and of the files it leaves on disk.
	Dialects() []session.Dialect
}

// Session is one conversation with an agent.
type Session interface {
	// Prompt gives the agent something to do and waits until it has finished the turn. Cancelling
	// the context interrupts the agent; the result then says so. An error is returned only if
	// nothing was run at all; everything that happened in the run is in the result.
	Prompt(ctx context.Context, text string) (Result, error)
	// ID returns the agent's own id of the conversation, with which it can be resumed; empty until
	// it is known.
	ID() string
	// Close ends the session and everything that the agent started. It is safe to call it more than
	// once.
	Close() error
}

// Info describes an agent.
type Info struct {
	ID           session.AgentID
	Title        string // for people
	DefaultModel string // empty: the agent decides
	Capabilities Capabilities
	// Protocols are the model protocols that the agent can speak: some of model.ProtocolNames.
	Protocols []string
	// InstallHint is the command that installs the agent.
	InstallHint string
	// LoginHint says how to give it credentials.
	LoginHint string
	// Credentials are the environment variables that hold keys and tokens of the agent; their
	// values are redacted from everything that is written.
	Credentials []string
	// Places says where the agent reads what a project brings it.
	Places Places
	// Managed are absolute paths of files by which an administrator configures the agent for
	// everybody on a machine; see ManagedFiles.
	Managed []string
	// CallIDKey is the key in the _meta of an MCP tool call under which the agent sends the id that
	// the model gave the call; empty: it sends none.
	CallIDKey string
	// Opaque says that nobody but the agent knows whether a model has worked in it: from its start
	// on an outcome is on its way.
	Opaque bool
}

// Support says how a limit or feature is provided.
type Support string

// The ways to have a feature.
const (
	Unsupported Support = ""         // not at all: asking for it is refused before anything starts
	Native      Support = "native"   // the agent does it itself
	Enforced    Support = "enforced" // we count and interrupt
)

// Capabilities says what an agent can do.
type Capabilities struct {
	Resume              Support // continue a conversation in a new process
	LongLived           Support // several prompts in one process
	MCP                 Support // tools injected over MCP
	Usage               Support // token counts in its stream
	MaxTurns            Support
	SystemPromptAppend  Support
	SystemPromptReplace Support
	AllowedTools        Support
	DisallowedTools     Support
	Subscription        Support // can be run on a plan instead of a key
	Settings            Support // a settings file of its own format (Config.Settings)
	Effort              Support // how long its model thinks (Config.Effort)
	Sampling            Support // Config.Temperature
	ShowsRetries        Support // a model call that is retried is shown in the stream
	ShowsFailedCalls    Support // a tool call that the agent itself rejects is shown in the stream
}

// Host describes the machine on which agents are looked for.
type Host struct {
	Environ  []string // KEY=value
	Spawner  sandbox.ProcessSpawner
	CacheDir string // where version probes are remembered; empty = nowhere
}

// Installation is an agent found on this machine.
type Installation struct {
	Path    string `json:"path"` // empty for an agent that is part of this binary
	Version string `json:"version"`
	// SHA256 is the program's, if it was asked for (Digest).
	SHA256 string `json:"sha256,omitempty"`
	// Scripts are the files beside the program that its entry in agents.yaml names, and
	// ScriptSHA256 their digests by path, if they were asked for.
	Scripts      []string          `json:"scripts,omitempty"`
	ScriptSHA256 map[string]string `json:"scriptSha256,omitempty"`
	// ReadPaths are the files and directories that the agent must be able to read inside a sandbox.
	ReadPaths []string `json:"readPaths,omitempty"`
	// Login says what credentials were found: "subscription", "apikey", or nothing.
	Login string `json:"login,omitempty"`
}

// Config is everything a session needs to know. The zero value of each field means "the agent's
// default".
type Config struct {
	// Name is the participant's name: the lane its events are written under.
	Name string
	Dir  string // working directory, required
	// Home is the session's own directory: the agent keeps its configuration, session files and
	// temporary files there. Required; a resumed session needs the home it was started with.
	Home string
	// Environ is the caller's environment. An agent takes from it only what it is allowed to see.
	Environ []string
	// ExtraEnv is added to the child's environment as it is.
	ExtraEnv []string

	Model    string
	ModelURL string // another endpoint of the agent's protocol, given without /v1, possibly with a path
	Auth     string // "", "subscription" or "apikey"

	// Gateway leads to the model, if there is one. Start in this package uses it and fills in Seat.
	Gateway Gateway
	// Account pays for the session; nil is no limit.
	Account *gateway.Account
	// Seat is the session's place at the gateway, with the endpoint and the key that the agent
	// gets; nil: its own.
	Seat *gateway.Seat
	// Called, if set, receives every model call that went through the gateway, even while the agent
	// prints.
	Called func(calls.Call)

	// Installation is the result of Probe; nil means that Start looks for the agent itself.
	Installation *Installation
	CacheDir     string // as in Host, for Start

	Resume  string // the id of the conversation to continue
	OneShot bool   // a single prompt will be given: use one process for it rather than a long-lived protocol

	MaxTurns int // per prompt; 0 = unlimited
	// Prices computes what the agent costs where it does not say so itself.
	Prices session.Prices

	// Retries is how often a model call that failed is tried again; nil means a number that
	// survives a short outage and does not take minutes.
	Retries *int

	// Context says what the agent reads of its project: ContextProject, which is the default, or
	// ContextNone.
	Context string
	// ProjectPrograms lets programs of the project run, such as hooks and tool servers. Otherwise
	// the agent reads the project's texts only.
	ProjectPrograms bool
	// Settings is a file in the agent's own format, over which fit's own settings win; empty: none.
	Settings string
	// Effort is how long the model thinks before it answers, in the agent's own words; empty: its
	// default.
	Effort string
	// Temperature is that of the model's sampling; nil: the default.
	Temperature *float64

	SystemPrompt        string
	ReplaceSystemPrompt bool // SystemPrompt replaces the agent's own instead of being appended

	AllowedTools    []string // empty = the agent's default
	DisallowedTools []string
	MCPServers      []MCPServer

	Spawner     sandbox.ProcessSpawner
	Isolation   sandbox.Isolation
	Network     string         // of a sandbox without the machine's: sandbox.NetworkModel or NetworkNone
	Doors       []Door         // what answers in a NetworkModel beside the model
	Limits      sandbox.Limits // of each process of the agent, or of its tools where it runs in ours
	Grace       time.Duration  // between asking the agent to stop and killing it; 0 = DefaultGrace
	OutputLimit int64          // bytes of output, all in the trace, after which the agent is killed; 0 = DefaultOutput

	// Redactor takes secrets out of what is cut, such as long results of tools and what a program
	// says when it fails, before it is cut; nil cuts it as it is.
	Redactor *redact.Redactor

	// Events receives every line that the agent prints, as it happens, whole and in order, one at a
	// time: native events byte for byte, raw and stderr events for the rest. The bytes are valid
	// during the call only. Required.
	Events func(event []byte)
	// Consumed, if set, is called until a prompt's end is known, whenever the agent says something
	// new about tokens, with what the prompt has consumed so far.
	Consumed func(session.TokenUsage)
	// Started, if set, is called once when the process runs and its version is known, before the
	// first event.
	Started func(Started)
}

// Isolated returns the isolation of the agent's programs: they may write to the working directory,
// unless it is declared read-only, and to the given directories of the agent.
func (c Config) Isolated(own ...string) sandbox.Isolation {
	isolation := c.Isolation
	if !isolation.Isolates() {
		return isolation
	}
	isolation.Writable = slices.Concat(isolation.Writable, own)
	if !slices.Contains(isolation.ReadOnly, c.Dir) {
		isolation.Writable = append(isolation.Writable, c.Dir)
	}
	return isolation
}

// Started describes an agent's process once it runs.
type Started struct {
	Version    string
	Protocol   string // the dialect of its events
	Model      string
	Auth       string
	KeyVisible bool // the agent and its shell can read the credential
	// Gateway is gateway.On or gateway.Off, and GatewayReason why it is off; empty if it was not
	// decided.
	Gateway       string
	GatewayReason string
	// ProjectPrograms are the files of the project whose programs the agent may run.
	ProjectPrograms []string
}
