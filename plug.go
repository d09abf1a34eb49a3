package fit

import (
	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/sandbox"
)

// What a program plugs in. An agent of one's own implements Agent and is named by the id of its
// AgentInfo; its sessions hand every event to AgentSetup.Events in a dialect of package session,
// such as that of package agent/events. A tool server is an [MCPServer] of a config.
type (
	// Agent is a coding agent: how it is found, started, and read.
	Agent = agent.Agent
	// AgentInfo describes an agent: its id, its title, what it supports.
	AgentInfo = agent.Info
	// AgentHost is the machine that an agent is looked for on.
	AgentHost = agent.Host
	// AgentInstallation is an agent as it was found.
	AgentInstallation = agent.Installation
	// AgentSetup is everything that a session of an agent starts from.
	AgentSetup = agent.Config
	// AgentSession is one conversation with an agent.
	AgentSession = agent.Session
	// AgentResult is how one prompt ended.
	AgentResult = agent.Result
	// RawAgentOutput is what the process of an agent left: exit code, streams, times.
	RawAgentOutput = agent.RawAgentOutput
	// Registry is a set of agents that can be named.
	Registry = agent.Registry

	// ProcessSpawner runs the programs of agents; [NewSpawner] returns that of this machine, around
	// which a program may put its own.
	ProcessSpawner = sandbox.ProcessSpawner
	// SpawnSpec says what a spawner runs, and within which limits.
	SpawnSpec = sandbox.SpawnSpec
	// SpawnResult is how a program ended.
	SpawnResult = sandbox.SpawnResult
)

// Agents returns all agents that fit knows, and those of the program, for Wiring.Registry.
func Agents(own ...Agent) *Registry { return catalog.Default().With(own...) }

// NewSpawner returns the spawner of this machine. When its Spawn returns, nothing of what it
// started is alive.
func NewSpawner() ProcessSpawner { return sandbox.NewSpawner() }

// ServeScript answers for a language model on the loopback interface as a script says, in the
// protocols of all vendors, so that an agent can be tried without a key and without cost. Scripts
// are those of the command fit model serve. The caller stops the server.
func ServeScript(script []byte) (url string, stop func() error, err error) {
	parsed, err := scripted.Parse(script)
	if err != nil {
		return "", nil, err
	}
	server, err := scripted.Listen("127.0.0.1:0",
		scripted.NewServer(map[string]*scripted.Script{"": parsed}, scripted.Options{}))
	if err != nil {
		return "", nil, err
	}
	return server.URL, server.Close, nil
}
