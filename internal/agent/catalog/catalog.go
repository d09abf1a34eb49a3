// Package catalog is the one list of agents. Adding an agent to fit means a folder beside this one
// and a line here.
package catalog

import (
	"slices"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/acp"
	"github.com/fit-eval/fit/internal/agent/builtin"
	"github.com/fit-eval/fit/internal/agent/claudecode"
	"github.com/fit-eval/fit/internal/agent/codex"
	"github.com/fit-eval/fit/internal/agent/command"
	"github.com/fit-eval/fit/internal/agent/http"
	"github.com/fit-eval/fit/internal/agent/pi"
)

// Default returns the agents in order of preference: the first one that is installed is the
// default. The one that is part of the binary always is, so those after it are used only when they
// are named.
func Default() *agent.Registry {
	agents := []agent.Agent{
		claudecode.New(),
		codex.New(),
		pi.New(),
		builtin.New(),
	}
	agents = append(append(agents, acp.Agents()...), builtin.NewModel())
	schemes := slices.Concat([]agent.Scheme{acp.Scheme()}, command.Schemes(), http.Schemes())
	return agent.NewRegistry(agents...).WithSchemes(schemes...)
}
