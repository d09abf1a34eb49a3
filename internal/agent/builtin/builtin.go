package builtin

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/model"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/price"
	"github.com/fit-eval/fit/session"
)

// The names of the two agents in the registry.
const (
	ID      session.AgentID = "builtin"
	ModelID session.AgentID = "model"
)

// Agent is the built-in agent. The zero value works.
type Agent struct {
	// MaxRetries is how often a failed model call is repeated; 0 is the client's default, a
	// negative number is never.
	MaxRetries int

	bare bool // without tools and system prompt: a prompt is one request
}

// New returns the built-in agent.
func New() *Agent { return &Agent{} }

// NewModel returns an agent that is just a model: every prompt is one request without tools. It
// answers the questions of datasets, and is the baseline for other agents.
func NewModel() *Agent { return &Agent{bare: true} }

func (a *Agent) id() session.AgentID {
	if a.bare {
		return ModelID
	}
	return ID
}

// Info implements agent.Agent.
func (a *Agent) Info() agent.Info {
	info := agent.Info{
		ID:           a.id(),
		Title:        "the small coding agent that is built into fit",
		DefaultModel: model.Anthropic.Info().DefaultModel,
		Protocols:    model.ProtocolNames(),
		InstallHint:  "nothing: it is part of fit",
		LoginHint:    "set " + model.KeyHint() + ", or name a server with OPENAI_BASE_URL or --model-url",
		Credentials:  model.Credentials(),
		Places:       places,
		CallIDKey:    callIDKey,
		Capabilities: agent.Capabilities{
			Resume:              agent.Native,
			LongLived:           agent.Native,
			MCP:                 agent.Native,
			Usage:               agent.Native,
			MaxTurns:            agent.Native,
			SystemPromptAppend:  agent.Native,
			SystemPromptReplace: agent.Native,
			AllowedTools:        agent.Native,
			DisallowedTools:     agent.Native,
			Effort:              agent.Native,
			Sampling:            agent.Native,
			ShowsRetries:        agent.Native,
			ShowsFailedCalls:    agent.Native,
		},
	}
	if a.bare {
		info.Title, info.CallIDKey = "a model by itself: one request, no tools", ""
		info.Places = agent.Places{}
		can := &info.Capabilities
		can.MCP, can.AllowedTools, can.DisallowedTools = agent.Unsupported, agent.Unsupported, agent.Unsupported
		can.ShowsFailedCalls = agent.Unsupported
	}
	return info
}

// Probe implements agent.Agent. The agent is always there; Login says whether it has a model.
func (a *Agent) Probe(_ context.Context, host agent.Host) (agent.Installation, error) {
	installation := agent.Installation{Version: buildVersion()}
	if _, err := chooseEndpoint(agent.Config{Environ: host.Environ}); err == nil {
		installation.Login = "apikey"
	}
	return installation, nil
}

// Dialects implements agent.Agent.
func (a *Agent) Dialects() []session.Dialect { return []session.Dialect{session.StreamDialect(ID)} }

// Check implements agent.Checker.
func (a *Agent) Check(cfg agent.Config) error {
	if err := agent.RequireTools(ID, toolNames(ownTools(new(conversation))), cfg.AllowedTools); err != nil {
		return err
	}
	endpoint, err := chooseEndpoint(cfg)
	if err != nil {
		return err
	}
	if err := a.checkEffort(cfg.Effort, endpoint); err != nil {
		return err
	}
	cfg.Prices = pricesOf(cfg)
	return agent.RequirePrice(a.id(), cfg, endpoint.model)
}

// efforts are the efforts of the models of OpenAI; the other protocols have no such word.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh"}

func (a *Agent) checkEffort(effort string, e endpoint) error {
	if protocol := e.config.Protocol; effort != "" && protocol != model.Chat && protocol != model.Responses {
		return agent.Refuse(a.id(), "agent %s has no effort with model %s; only the protocols chat and responses "+
			"have one", a.id(), e.model)
	}
	return agent.RequireEffort(a.id(), efforts, effort)
}

func pricesOf(cfg agent.Config) session.Prices {
	if cfg.Prices != nil {
		return cfg.Prices
	}
	return session.ListPrices(price.Default())
}

// Start implements agent.Agent.
func (a *Agent) Start(ctx context.Context, cfg agent.Config) (agent.Session, error) {
	cfg.Isolation.ImageHome = true // its own files are elsewhere
	if err := a.Check(cfg); err != nil {
		return nil, err
	}
	endpoint, err := chooseEndpoint(cfg)
	if err != nil {
		return nil, err
	}
	cfg.Prices = pricesOf(cfg)
	root, err := os.OpenRoot(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("open working directory: %w", err)
	}
	if cfg.Spawner == nil {
		cfg.Spawner = sandbox.NewSpawner()
	}
	c := &conversation{
		agent:    a,
		cfg:      cfg,
		endpoint: endpoint,
		root:     root,
		id:       cfg.Resume,
	}
	if err := c.open(ctx); err != nil {
		_ = c.Close() // the first error is the one to report
		return nil, err
	}
	return c, nil
}

// open makes or loads the conversation and connects its tools.
func (c *conversation) open(ctx context.Context) error {
	c.store = store{dir: filepath.Join(c.cfg.Home, "sessions")}
	if c.id == "" {
		c.id = rand.Text()
		if err := c.store.append(c.id); err != nil { // from now on it can be resumed, even if it is empty
			return err
		}
	} else if err := c.load(); err != nil {
		return err
	}
	client, err := c.endpoint.client(c.retries(), c.onRetry)
	if err != nil {
		return err
	}
	c.client = client
	servers, err := connectServers(ctx, c.cfg)
	c.servers = servers
	if err != nil {
		return err
	}
	c.tools = c.offeredTools()
	return nil
}

// retries returns how often a failed model call is repeated, in the client's terms: 0 is its
// default, negative is never.
func (c *conversation) retries() int {
	switch {
	case c.cfg.Retries == nil:
		return c.agent.MaxRetries
	case *c.cfg.Retries == 0:
		return -1
	default:
		return *c.cfg.Retries
	}
}

// offeredTools applies the lists of allowed and disallowed tools. Tools of attached servers were
// asked for: only the list of disallowed tools removes them.
func (c *conversation) offeredTools() []tool {
	if c.agent.bare {
		return nil
	}
	var offered []tool
	for _, t := range ownTools(c) {
		if len(c.cfg.AllowedTools) == 0 || slices.Contains(c.cfg.AllowedTools, t.name) {
			offered = append(offered, t)
		}
	}
	for _, server := range c.servers {
		offered = append(offered, server.tools...)
	}
	return slices.DeleteFunc(offered, func(t tool) bool { return slices.Contains(c.cfg.DisallowedTools, t.name) })
}

func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return strings.Trim(info.Main.Version, "()")
	}
	return "devel"
}
