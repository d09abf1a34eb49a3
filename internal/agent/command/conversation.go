package command

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fit-eval/fit/agent/events"
	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/model"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/session"
)

// maxAnswer bounds the answer that is taken from standard output. The trace has every line.
const maxAnswer = 1 << 20

// maxSession bounds the id of a session, which is an argument of the next process.
const maxSession = 4 << 10

// temporaryFailure is the exit code of a program that reports a failure of the model's service:
// EX_TEMPFAIL of sysexits.h.
const temporaryFailure = 75

// conversation is one session with the program. Each prompt starts a process.
type conversation struct {
	*agent.Conversation
	entry Entry
	cfg   agent.Config
	id    string // ours, where the command takes one

	prompting sync.Mutex
	prompts   int
	output    output // of the prompt that runs; the process owns it until it has ended
}

func newConversation(entry Entry, cfg agent.Config) (*conversation, error) {
	c := &conversation{entry: entry, cfg: cfg}
	if strings.Contains(entry.Command, wordSession) && cfg.Resume == "" {
		c.id = rand.Text()
	}
	for _, dir := range []string{c.home(), c.tmp()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("prepare agent home: %w", err)
		}
	}
	settings := agent.ConversationConfig{
		Agent:        session.AgentID(entry.ID),
		Config:       cfg,
		Dialect:      events.Dialect(),
		Closing:      c.closing,
		EnforceTurns: true,
		Started:      agent.Started{Auth: c.auth(), KeyVisible: c.keyVisible()},
	}
	if entry.Events != eventsNDJSON {
		settings.Plain = c.output.add
	}
	c.Conversation = agent.NewConversation(settings)
	return c, nil
}

func (c *conversation) home() string { return filepath.Join(c.cfg.Home, "home") }
func (c *conversation) tmp() string  { return filepath.Join(c.cfg.Home, "tmp") }

func (c *conversation) auth() string {
	if len(c.keysSet()) > 0 {
		return agent.AuthAPIKey
	}
	return ""
}

// keysSet returns the variables with keys of the program that are set.
func (c *conversation) keysSet() []string {
	return slices.DeleteFunc(slices.Clone(c.entry.keys()), func(name string) bool {
		return agent.Getenv(c.cfg.Environ, name) == ""
	})
}

// routedKeys are the variables that hold the token of a program behind the gateway.
var routedKeys = []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY"}

// keyVisible reports whether the program gets a real key.
func (c *conversation) keyVisible() bool {
	return slices.ContainsFunc(c.keysSet(), func(name string) bool {
		return c.cfg.Seat == nil || name != "ANTHROPIC_AUTH_TOKEN" && !slices.Contains(routedKeys, name)
	})
}

// modelURL returns where the program finds its model.
func (c *conversation) modelURL() string {
	if c.cfg.Seat != nil {
		return c.cfg.Seat.URL
	}
	return strings.TrimSuffix(c.cfg.ModelURL, "/")
}

// ID implements agent.Session.
func (c *conversation) ID() string {
	return cmp.Or(c.Conversation.ID(), c.id)
}

// Prompt implements agent.Session.
func (c *conversation) Prompt(ctx context.Context, text string) (agent.Result, error) {
	c.prompting.Lock()
	defer c.prompting.Unlock()
	line := c.entry.Command
	if c.prompts > 0 || c.cfg.Resume != "" {
		if line = c.entry.Resume; line == "" || c.ID() == "" {
			return agent.Result{}, &agent.CapabilityError{
				Agent: session.AgentID(c.entry.ID),
				Reason: fmt.Sprintf("agent %s cannot continue a conversation: its entry has no resume, or it has not "+
					"reported a session id", c.entry.ID),
			}
		}
	}
	if id := c.ID(); len(id) > maxSession || strings.ContainsRune(id, 0) {
		return agent.Result{}, &agent.CapabilityError{
			Agent: session.AgentID(c.entry.ID),
			Reason: fmt.Sprintf("agent %s cannot continue a conversation: the id of its session has %d bytes, or is "+
				"not text", c.entry.ID, len(id)),
		}
	}
	c.prompts++
	c.output = output{}
	command, err := c.command(line, text)
	if err != nil {
		return agent.Result{}, err
	}
	result, err := c.RunOnce(ctx, command)
	if err != nil {
		return agent.Result{}, fmt.Errorf("run agent %s: %w", c.entry.ID, err)
	}
	result.SessionID = c.ID()
	return result, nil
}

// command fills a command line in and lays out the files that it names.
func (c *conversation) command(line, prompt string) (agent.Command, error) {
	values := map[string]string{
		wordModel:    c.cfg.Model,
		wordModelURL: c.modelURL(),
		wordSession:  c.ID(),
		wordDir:      c.cfg.Dir,
		wordHome:     c.home(),
	}
	servers, err := serversFile(c.cfg.MCPServers)
	if err != nil {
		return agent.Command{}, err
	}
	for word, content := range map[string]string{
		wordPrompt: prompt, wordSystem: c.cfg.SystemPrompt, wordMCP: servers,
	} {
		if !c.entry.has(word) {
			continue
		}
		file := filepath.Join(c.cfg.Home, strings.Trim(word, "{}"))
		if err := agent.WriteHome(c.cfg.Home, file, []byte(content)); err != nil {
			return agent.Command{}, err
		}
		values[word] = file
	}
	fill := func(text string) string {
		return wordForm.Get().ReplaceAllStringFunc(text, func(word string) string { return values[word] })
	}
	made := agent.Command{Argv: c.entry.split(line)}
	for i, word := range made.Argv {
		made.Argv[i] = fill(word)
	}
	made.Argv[0] = c.cfg.Installation.Path
	if !strings.Contains(line, wordPrompt) {
		made.Stdin = prompt
	}
	made.Env = c.environ(fill)
	return made, nil
}

// environ returns everything the program sees. The addresses of the model have the names under
// which the vendors' SDKs look for them.
func (c *conversation) environ(fill func(string) string) []string {
	env := sandbox.NewEnvironment(sandbox.EnvironmentConfig{
		Parent: c.cfg.Environ,
		Home:   c.home(),
		TmpDir: c.tmp(),
	})
	env.Allow(c.cfg.Environ, c.entry.keys()...)
	env.Allow(c.cfg.Environ, model.Addresses()...)
	if c.cfg.Seat != nil {
		for _, name := range routedKeys {
			env[name] = c.cfg.Seat.Token
		}
		delete(env, "ANTHROPIC_AUTH_TOKEN") // it would win over the key
	}
	if url := c.modelURL(); url != "" {
		env.Assign("FIT_MODEL_URL=" + url)
		for _, protocol := range model.Protocols() {
			env.Assign(protocol.Info().Address(url))
		}
	}
	if c.cfg.Model != "" {
		env.Assign("FIT_MODEL=" + c.cfg.Model)
	}
	for name, value := range c.entry.Env {
		env[name] = fill(value)
	}
	env.Assign(c.cfg.ExtraEnv...)
	return env.List()
}

// closing makes the result event of a program that has printed none.
func (c *conversation) closing(exitCode int, lastStderr string) []byte {
	result := events.Result{
		Type:     events.TypeResult,
		Success:  exitCode == 0,
		Text:     c.output.text(),
		ExitCode: &exitCode,
	}
	switch {
	case exitCode == 0 && c.entry.Events != eventsNDJSON && result.Text == "":
		result.Success = false
		result.Text = "the program ended with exit code 0 and printed nothing; what it prints is its answer"
	case exitCode != 0:
		result.Text = fmt.Sprintf("the program ended with exit code %d", exitCode)
		if lastStderr != "" {
			result.Text += "; it said: " + display.Line(lastStderr)
		}
	}
	if exitCode == temporaryFailure {
		result.Kind = string(session.ErrorAPI)
	}
	return events.Line(result)
}

// serversFile returns the file of tool servers in the form that most clients read.
func serversFile(servers []agent.MCPServer) (string, error) {
	all, err := agent.MCPEntries(servers)
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(map[string]any{"mcpServers": all})
	if err != nil {
		return "", fmt.Errorf("write tool servers: %w", err)
	}
	return string(data), nil
}

// output collects the lines of standard output, up to maxAnswer.
type output struct {
	lines strings.Builder
	cut   int
}

func (a *output) add(line []byte) {
	if a.cut > 0 || a.lines.Len()+len(line) >= maxAnswer {
		a.cut += len(line) + 1
		return
	}
	a.lines.Write(line)
	a.lines.WriteByte('\n')
}

func (a *output) text() string {
	text := strings.ToValidUTF8(strings.TrimSpace(a.lines.String()), "\uFFFD")
	if a.cut > 0 {
		text += fmt.Sprintf("\n[%d more bytes are in the trace]", a.cut)
	}
	return text
}
