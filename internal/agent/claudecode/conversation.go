package claudecode

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
)

// conversation is one session with the program.
type conversation struct {
	*agent.Conversation
	cfg   agent.Config
	login login
	files sessionFiles

	requests atomic.Int64
	greeted  atomic.Bool // the program has answered our first control request
}

func newConversation(cfg agent.Config, login login, files sessionFiles) *conversation {
	c := &conversation{cfg: cfg, login: login, files: files}
	c.Conversation = agent.NewConversation(agent.ConversationConfig{
		Agent:   agentID,
		Config:  cfg,
		Dialect: session.StreamDialect(agentID),
		Observe: c.observe,
		Started: agent.Started{Auth: login.mode, KeyVisible: login.secret},
	})
	return c
}

// Prompt implements agent.Session.
func (c *conversation) Prompt(ctx context.Context, text string) (agent.Result, error) {
	result, err := c.InTurn(func() (agent.Result, error) {
		if c.cfg.OneShot {
			return c.RunOnce(ctx, agent.Command{Argv: c.argv(), Env: c.environ(), Stdin: text})
		}
		return c.converse(ctx, text)
	})
	if err != nil {
		return agent.Result{}, err
	}
	if result.Err != nil && c.cfg.Resume != "" && strings.Contains(result.Err.Error(), "No conversation found") {
		result.Err = fmt.Errorf("%w: %w", agent.ErrNoConversation, result.Err)
	}
	result.Output.DiskJSONLPath = agent.FindRecord(c.files.config, "projects/*/%s.jsonl", result.SessionID)
	return result, nil
}

func (c *conversation) argv() []string {
	return arguments{
		path:      c.cfg.Installation.Path,
		cfg:       c.cfg,
		files:     c.files,
		longLived: !c.cfg.OneShot,
		resume:    c.ID(),
	}.argv()
}

func (c *conversation) environ() []string {
	return environment(c.cfg, c.login, c.files, os.Geteuid() == 0).List()
}

// converse gives a prompt to the long-lived process, starting it if it does not run.
func (c *conversation) converse(ctx context.Context, text string) (agent.Result, error) {
	if !c.Alive() {
		c.greeted.Store(false)
		if err := c.Open(ctx, agent.Command{Argv: c.argv(), Env: c.environ()}); err != nil {
			return agent.Result{}, err
		}
		if err := c.request("initialize"); err != nil {
			return agent.Result{}, err
		}
		waiting, cancel := context.WithTimeout(ctx, agent.StartTimeout)
		defer cancel()
		if err := c.Until(waiting, c.greeted.Load); err != nil && ctx.Err() == nil {
			// A process that ended without a greeting may have said why in a result; the turn below
			// finds it.
			if c.Alive() {
				return agent.Result{}, fmt.Errorf("no answer to the first request: %w", err)
			}
		}
	}
	say := func() error {
		return c.Send(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": text}})
	}
	return c.Turn(ctx, say, func() error { return c.request("interrupt") })
}

// request sends a control request.
func (c *conversation) request(subtype string) error {
	id := "fit-" + strconv.FormatInt(c.requests.Add(1), 10)
	return c.Send(map[string]any{
		"type": "control_request", "request_id": id,
		"request": map[string]any{"subtype": subtype},
	})
}

// observe answers the control protocol and checks the first event.
func (c *conversation) observe(event []byte) error {
	if !bytes.Contains(event, []byte(`"control_re`)) && !bytes.Contains(event, []byte(`"init"`)) {
		return nil // most events do not concern us, and may be large
	}
	v, ok := jsontape.Parse(event)
	if !ok {
		return nil // the decoder counts it
	}
	switch v.TextOf("type") {
	case "control_response":
		c.greeted.Store(true)
	case "control_request":
		return c.answer(v)
	case "system":
		if v.TextOf("subtype") == "init" {
			return c.check(v)
		}
	}
	return nil
}

// answer replies to a request of the program. Permissions are skipped, so none should come;
// a request that comes anyway must not hang.
func (c *conversation) answer(v jsontape.Value) error {
	id := v.TextOf("request_id")
	response := map[string]any{"subtype": "error", "request_id": id, "error": "not supported"}
	if v.Get("request").TextOf("subtype") == "can_use_tool" {
		input := json.RawMessage("{}")
		if asked := v.Path("request", "input"); asked.Exists() {
			input = asked.Raw()
		}
		response = map[string]any{
			"subtype": "success", "request_id": id,
			"response": map[string]any{"behavior": "allow", "updatedInput": input},
		}
	}
	return c.Send(map[string]any{"type": "control_response", "response": response})
}

// check compares what the program says about itself with what was asked for.
func (c *conversation) check(v jsontape.Value) error {
	if err := c.login.agrees(v.TextOf("apiKeySource")); err != nil {
		return err
	}
	memory := v.Path("memory_paths", "auto").Text()
	if c.files.settings != "" && memory != "" && filepath.Base(memory) != memoryName {
		return errors.New("claude has ignored the settings that protect the session from those of the project; use " +
			"another version of it, or --context none")
	}
	status := map[string]string{}
	for server := range v.Get("mcp_servers").Elements() {
		status[server.TextOf("name")] = server.TextOf("status")
	}
	for _, server := range c.cfg.MCPServers {
		switch state := status[server.Name]; state {
		case "connected":
		case "":
			return fmt.Errorf("MCP server %s was not attached", server.Name)
		default:
			return fmt.Errorf("MCP server %s is not connected but %s; check that it runs and that its token is right",
				server.Name, state)
		}
	}
	return nil
}
