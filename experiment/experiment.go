package experiment

import (
	"context"

	"github.com/fit-eval/fit/ledger"
)

// Cell is one task, one arm, one repetition.
type Cell struct {
	Arm      string `json:"arm"`
	TaskID   string `json:"taskId"`
	RunIndex int    `json:"runIndex"`
	// Seed is the cell's own, derived from the plan's seed; scripted models draw from it.
	Seed uint64 `json:"seed"`
}

// Executor makes one attempt at a cell. It returns a record for everything that can happen to an attempt; an error means that it could not even
// tell, and is recorded as one.
type Executor interface {
	Execute(ctx context.Context, cell Cell, attempt int) (ledger.Record, error)
}

// Arm is a complete agent configuration. "Agent A against agent B" and "skill v1 against skill v2" are the same question: two arms.
type Arm struct {
	Name         string            `json:"name" yaml:"name"`
	Agent        string            `json:"agent,omitempty" yaml:"agent"`
	Model        string            `json:"model,omitempty" yaml:"model"`
	ModelURL     string            `json:"modelUrl,omitempty" yaml:"modelUrl"`
	Profile      string            `json:"profile,omitempty" yaml:"profile"`
	Skills       string            `json:"skills,omitempty" yaml:"skills"` // directory that contains .claude
	Prompt       string            `json:"prompt,omitempty" yaml:"prompt"` // appended to the system prompt
	AllowedTools []string          `json:"allowedTools,omitempty" yaml:"allowedTools"`
	Env          map[string]string `json:"env,omitempty" yaml:"env"`
	MaxTurns     int               `json:"maxTurns,omitempty" yaml:"maxTurns"`
	Auth         string            `json:"auth,omitempty" yaml:"auth"`
	Lead         string            `json:"lead,omitempty" yaml:"lead"` // agent of a supervising lead; empty: the agent gets the task word for word
	LeadModel    string            `json:"leadModel,omitempty" yaml:"leadModel"`
	Hash         string            `json:"hash" yaml:"-"` // of everything above and of the content of the skills directory
}
