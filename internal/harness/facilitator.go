package harness

import (
	"cmp"
	"io"

	"github.com/fit-eval/fit/redact"
)

// FacilitatorConfig is a session in which a facilitator leads several participants.
type FacilitatorConfig struct {
	FacilitatorCwd     string // empty is the current directory
	FacilitatorProfile string
	// Facilitator has further settings of the lead (agent, model, tools); its name and role are
	// given by the mode.
	Facilitator  AgentConfig
	AgentConfigs []AgentConfig
	NewAgent     AgentFunc
	Output       io.Writer        // of the trace
	Redactor     *redact.Redactor // nil is the one the environment asks for
	Options      Options
}

// NewFacilitator checks the config and reads the profiles.
func NewFacilitator(cfg FacilitatorConfig) (*Session, error) {
	return newSession(sessionConfig{
		mode:         ModeFacilitate,
		lead:         leadConfig(ModeFacilitate, cfg.Facilitator, cfg.FacilitatorCwd, cfg.FacilitatorProfile),
		participants: cfg.AgentConfigs,
		newAgent:     cfg.NewAgent,
		output:       cfg.Output,
		redactor:     cfg.Redactor,
		options:      cfg.Options,
	})
}

// leadConfig gives the lead of a mode its name.
func leadConfig(mode Mode, lead AgentConfig, cwd, profile string) AgentConfig {
	lead.Name, lead.Role = mode.traits().lead, mode.traits().lead
	lead.Cwd = cmp.Or(cwd, lead.Cwd)
	lead.AgentProfile = cmp.Or(profile, lead.AgentProfile)
	return lead
}
