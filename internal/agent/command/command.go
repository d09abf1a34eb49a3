package command

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/agent/events"
	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/model/wire"
	"github.com/fit-eval/fit/session"
)

// Agent is a program.
type Agent struct{ entry Entry }

// New returns the agent of a valid entry.
func New(entry Entry) *Agent { return &Agent{entry: entry} }

// Schemes returns the prefixes that turn a command into an agent without configuration.
func Schemes() []agent.Scheme {
	scheme := func(prefix, output string) agent.Scheme {
		return agent.Scheme{
			Prefix:   prefix,
			Usage:    prefix + ":PROGRAM [ARG...]",
			Dialects: []session.Dialect{events.Dialect()},
			New: func(rest string) (agent.Agent, error) {
				dir, err := os.Getwd()
				if err != nil {
					return nil, fmt.Errorf("find the program of %s: %w", prefix, err)
				}
				entry := Entry{
					ID:      prefix + ":" + rest,
					Command: rest,
					Events:  output,
					Dir:     dir,
				}
				if err := entry.Validate(); err != nil {
					return nil, err
				}
				return New(entry), nil
			},
		}
	}
	return []agent.Scheme{scheme("cmd", eventsText), scheme("cmd+ndjson", eventsNDJSON)}
}

func (a *Agent) id() session.AgentID { return session.AgentID(a.entry.ID) }

// Info implements agent.Agent. Its capabilities follow from the words in its command and from its
// events.
func (a *Agent) Info() agent.Info {
	e := a.entry
	when := func(have bool, support agent.Support) agent.Support {
		if have {
			return support
		}
		return agent.Unsupported
	}
	told := e.Events == eventsNDJSON
	return agent.Info{
		ID:          a.id(),
		Title:       cmp.Or(e.Title, "program "+e.program()),
		Opaque:      true,
		Protocols:   e.Protocols,
		InstallHint: cmp.Or(e.Install, "nothing: it is your own program"),
		LoginHint:   cmp.Or(e.Login, "set "+strings.Join(e.keys(), " or ")),
		Credentials: e.keys(),
		Places:      e.Places,
		Capabilities: agent.Capabilities{
			Resume:             when(e.Resume != "", agent.Native),
			MCP:                when(e.has(wordMCP), agent.Native),
			SystemPromptAppend: when(e.has(wordSystem), agent.Native),
			Usage:              when(told, agent.Native),
			MaxTurns:           when(told, agent.Enforced),
		},
	}
}

// Dialects implements agent.Agent.
func (*Agent) Dialects() []session.Dialect { return []session.Dialect{events.Dialect()} }

// program returns the first word of the command.
func (e Entry) program() string {
	split := e.split(e.Command)
	if len(split) == 0 {
		return ""
	}
	return split[0]
}

// Probe implements agent.Agent. It looks for the program and runs nothing: the version is a digest
// of the entry, of the program and of the files that the command names.
func (a *Agent) Probe(_ context.Context, host agent.Host) (agent.Installation, error) {
	path, err := a.find(host.Environ)
	if err != nil {
		return agent.Installation{}, err
	}
	found := agent.Installation{Path: path}
	hash := sha256.New()
	shown := a.entry
	shown.Dir = "" // the location of the files does not matter
	if err := json.NewEncoder(hash).Encode(shown); err != nil {
		return agent.Installation{}, fmt.Errorf("describe agent %s: %w", a.id(), err)
	}
	for _, file := range append([]string{path}, a.entry.files()...) {
		real, err := filepath.EvalSymlinks(file)
		if err != nil {
			return agent.Installation{}, fmt.Errorf("find agent %s: %w", a.id(), err)
		}
		found.ReadPaths = append(found.ReadPaths, real)
		if info, err := os.Stat(real); err != nil || !info.Mode().IsRegular() {
			continue // of a directory only the name counts
		}
		sum, err := agent.Digest(host, agent.Installation{Path: real})
		if err != nil {
			return agent.Installation{}, err
		}
		fmt.Fprintln(hash, sum)
		if file != path {
			found.Scripts = append(found.Scripts, real)
		}
	}
	found.Version = hex.EncodeToString(hash.Sum(nil))[:12]
	for _, name := range a.entry.keys() {
		if agent.Getenv(host.Environ, name) != "" {
			found.Login = agent.AuthAPIKey
		}
	}
	if len(a.entry.Keys) == 0 && found.Login == "" {
		found.Login = "its own business"
	}
	return found, nil
}

// find looks for the program: beside the entry, at its path, or in PATH.
func (a *Agent) find(environ []string) (string, error) {
	name := a.entry.program()
	path := name
	if !filepath.IsAbs(name) && !strings.Contains(name, "/") {
		path = agent.LookPath(environ, name)
	}
	info, err := os.Stat(path)
	switch {
	case path == "" && a.entry.Install != "":
		return "", &agent.NotFoundError{Agent: a.id(), Hint: a.entry.Install}
	case path == "":
		return "", fmt.Errorf("agent %s: there is no program %q in PATH", a.id(), name)
	case err != nil:
		return "", fmt.Errorf("agent %s: %w", a.id(), err)
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return "", fmt.Errorf("agent %s: %s is not an executable file", a.id(), path)
	}
	return filepath.Abs(path)
}

// Upstreams implements agent.Routed. A program that is given an endpoint is given the gateway
// instead; without one it is unknown whether the program uses an address at all.
func (a *Agent) Upstreams(cfg agent.Config) ([]gateway.Upstream, error) {
	if cfg.ModelURL == "" {
		return nil, fmt.Errorf("agent %s finds its model by itself; with --model-url, calls go through the "+
			"gateway", a.id())
	}
	key := func(names ...string) string {
		for _, name := range names {
			if value := agent.Getenv(cfg.Environ, name); value != "" && slices.Contains(a.entry.keys(), name) {
				return value
			}
		}
		return ""
	}
	return gateway.Everywhere(cfg.ModelURL, func(protocol *wire.Info) string {
		return key(protocol.KeyVariable, "ANTHROPIC_API_KEY", "OPENAI_API_KEY")
	}), nil
}

// Check implements agent.Checker.
func (a *Agent) Check(cfg agent.Config) error {
	switch {
	case a.entry.has(wordModel) && cfg.Model == "":
		return agent.Refuse(a.id(), "agent %s needs the name of a model: its command has %s", a.id(), wordModel)
	case a.entry.has(wordModelURL) && cfg.ModelURL == "":
		return agent.Refuse(a.id(), "agent %s needs the address of a model: its command has %s; set --model-url",
			a.id(), wordModelURL)
	case a.entry.Cost != "reported":
		return agent.RequirePrice(a.id(), cfg, cfg.Model)
	}
	return nil
}

// Start implements agent.Agent. A process starts with every prompt.
func (a *Agent) Start(ctx context.Context, cfg agent.Config) (agent.Session, error) {
	if err := agent.Ready(ctx, a, &cfg); err != nil {
		return nil, err
	}
	if cfg.Home == "" {
		return nil, errors.New("start agent: no home directory given")
	}
	return newConversation(a.entry, cfg)
}
