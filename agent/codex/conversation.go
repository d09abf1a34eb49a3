package codex

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/internal/lazyregexp"
)

// conversation is one session with the program.
type conversation struct {
	*agent.Conversation
	cfg          agent.Config
	installation agent.Installation
	login        login
	place        place
	client       client // of the app server

	prompting sync.Mutex
	spentUSD  float64
}

func newConversation(cfg agent.Config, installation agent.Installation, login login, place place) *conversation {
	cfg.Installation = &installation
	c := &conversation{
		cfg:          cfg,
		installation: installation,
		login:        login,
		place:        place,
	}
	dialect := execDialect()
	if needsServer(cfg) {
		dialect = serverDialect()
	}
	c.Conversation = agent.NewConversation(agent.ConversationConfig{
		Agent:         agentID,
		Config:        cfg,
		Dialect:       dialect,
		Observe:       c.observe,
		EnforceTurns:  true,
		EnforceBudget: true,
		Started: agent.Started{
			Version:    installation.Version,
			Protocol:   dialect.Name,
			Model:      cfg.Model,
			Auth:       login.mode,
			KeyVisible: login.secret,
		},
	})
	return c
}

// needsServer decides between one process for each prompt and the app server. The package's
// documentation says why.
func needsServer(cfg agent.Config) bool {
	return !cfg.OneShot || cfg.MaxTurns > 0 || cfg.MaxCostUSD > 0 || cfg.Resume != "" || cfg.Model == ""
}

// Prompt implements agent.Session.
func (c *conversation) Prompt(ctx context.Context, text string) (agent.Result, error) {
	c.prompting.Lock()
	defer c.prompting.Unlock()
	if c.cfg.MaxCostUSD > 0 && c.spentUSD >= c.cfg.MaxCostUSD {
		return agent.Result{}, errors.New("the session's budget is used up")
	}
	var result agent.Result
	var err error
	if needsServer(c.cfg) {
		result, err = c.converse(ctx, text)
	} else {
		argv := arguments{path: c.installation.Path, cfg: c.cfg, resume: c.ID()}.exec()
		result, err = c.RunOnce(ctx, agent.Command{Argv: argv, Env: c.environ(), Stdin: text})
	}
	if err != nil {
		return agent.Result{}, fmt.Errorf("run agent %s: %w", agentID, err)
	}
	if result.Usage.CostUSD != nil {
		c.spentUSD += *result.Usage.CostUSD
	}
	result.Output.DiskJSONLPath = c.rollout(result.SessionID)
	return result, nil
}

func (c *conversation) environ() []string { return environment(c.cfg, c.login, c.place) }

var plainID = lazyregexp.New(`^[0-9A-Za-z-]+$`)

// rollout finds the program's own record of the conversation.
func (c *conversation) rollout(id string) string {
	if !plainID.MatchString(id) {
		return "" // the id comes from the program, and goes into a path
	}
	found, err := filepath.Glob(filepath.Join(glob.Escape(c.place.codexHome), "sessions", "*", "*", "*",
		"rollout-*-"+id+".jsonl"))
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[0]
}
