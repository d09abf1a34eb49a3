package harness

import (
	"cmp"
	"context"
	"fmt"
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

// Facilitator runs a facilitated session.
type Facilitator struct{ loop *loop }

// NewFacilitator checks the config and reads the profiles.
func NewFacilitator(cfg FacilitatorConfig) (*Facilitator, error) {
	loop, err := newSession(sessionConfig{
		mode:         ModeFacilitate,
		lead:         leadConfig(ModeFacilitate, cfg.Facilitator, cfg.FacilitatorCwd, cfg.FacilitatorProfile),
		participants: cfg.AgentConfigs,
		newAgent:     cfg.NewAgent,
		output:       cfg.Output,
		redactor:     cfg.Redactor,
		options:      cfg.Options,
	})
	if err != nil {
		return nil, fmt.Errorf("facilitate: %w", err)
	}
	return &Facilitator{loop}, nil
}

// Run holds the session.
func (f *Facilitator) Run(ctx context.Context, task string) (Result, error) {
	return f.loop.run(ctx, task)
}

// leadConfig gives the lead of a mode its name.
func leadConfig(mode Mode, lead AgentConfig, cwd, profile string) AgentConfig {
	lead.Name, lead.Role = leadOf(mode), leadOf(mode)
	lead.Cwd = cmp.Or(cwd, lead.Cwd)
	lead.AgentProfile = cmp.Or(profile, lead.AgentProfile)
	return lead
}
