package codex

import (
	"context"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway"
)

// conversation is one session with the program.
type conversation struct {
	*agent.Conversation
	cfg     agent.Config
	login   login
	files   sessionFiles
	project project
	client  client // of the app server
}

func newConversation(cfg agent.Config, login login, files sessionFiles, project project) *conversation {
	c := &conversation{
		cfg:     cfg,
		login:   login,
		files:   files,
		project: project,
	}
	dialect := execDialect()
	if needsServer(cfg, project) {
		dialect = serverDialect()
	}
	c.Conversation = agent.NewConversation(agent.ConversationConfig{
		Agent:        agentID,
		Config:       cfg,
		Dialect:      dialect,
		Observe:      c.observe,
		EnforceTurns: true,
		Started:      agent.Started{Auth: login.mode, KeyVisible: login.secret},
	})
	return c
}

// needsServer decides between one process for each prompt and the app server. The package's
// documentation says why.
func needsServer(cfg agent.Config, project project) bool {
	reported := cfg.Seat == nil && cfg.Account.Budget() != gateway.Budget{} // what it uses must be known while it works
	return !cfg.OneShot || cfg.MaxTurns > 0 || reported || cfg.Resume != "" || cfg.Model == "" ||
		project.settings
}

// Prompt implements agent.Session.
func (c *conversation) Prompt(ctx context.Context, text string) (agent.Result, error) {
	result, err := c.InTurn(func() (agent.Result, error) {
		if needsServer(c.cfg, c.project) {
			return c.converse(ctx, text)
		}
		return c.RunOnce(ctx, agent.Command{Argv: c.arguments().exec(), Env: c.environ(), Stdin: text})
	})
	if err == nil {
		result.Output.DiskJSONLPath = agent.FindRecord(c.files.codexHome, "sessions/*/*/*/rollout-*-%s.jsonl",
			result.SessionID)
	}
	return result, err
}

func (c *conversation) arguments() arguments {
	return arguments{
		path:    c.cfg.Installation.Path,
		cfg:     c.cfg,
		project: c.project,
		login:   c.login.mode,
		resume:  c.ID(),
	}
}

func (c *conversation) environ() []string { return environment(c.cfg, c.login, c.files) }
