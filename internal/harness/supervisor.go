package harness

import (
	"cmp"
	"io"

	"github.com/fit-eval/fit/redact"
)

// SupervisorConfig is a session in which a supervisor leads one agent.
type SupervisorConfig struct {
	SupervisorCwd     string // empty is the current directory
	SupervisorProfile string // "judge" is one that ships with the binary
	// Supervisor has further settings of the lead; its name and role are given by the mode.
	Supervisor AgentConfig
	AgentCwd   string
	// AgentProfile is the profile of the supervised agent, and Agent has its further settings; its
	// name is given by the mode.
	AgentProfile string
	Agent        AgentConfig
	// ReadOnlySandbox runs the supervisor in a sandbox in which it sees its own directory and the
	// agent's but can change neither. Only then may it run commands without being given Bash by
	// name: a supervisor leads, and does not do the work.
	ReadOnlySandbox bool
	NewAgent        AgentFunc
	Output          io.Writer        // of the trace
	Redactor        *redact.Redactor // nil is the one the environment asks for
	Options         Options
}

// NewSupervisor checks the config and reads the profiles.
func NewSupervisor(cfg SupervisorConfig) (*Session, error) {
	supervised := cfg.Agent
	supervised.Name = supervisedName
	supervised.Role = cmp.Or(supervised.Role, supervisedName)
	supervised.Cwd = cmp.Or(cfg.AgentCwd, supervised.Cwd)
	supervised.AgentProfile = cmp.Or(cfg.AgentProfile, supervised.AgentProfile)
	return newSession(sessionConfig{
		mode:         ModeSupervise,
		lead:         leadConfig(ModeSupervise, cfg.Supervisor, cfg.SupervisorCwd, cfg.SupervisorProfile),
		participants: []AgentConfig{supervised},
		sealLead:     cfg.ReadOnlySandbox,
		newAgent:     cfg.NewAgent,
		output:       cfg.Output,
		redactor:     cfg.Redactor,
		options:      cfg.Options,
	})
}
