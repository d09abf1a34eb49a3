package fit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/harness/mcpserve"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/price"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// Wiring holds what sessions take from the program that runs them. The zero value takes everything
// from the process: all agents that fit knows, its environment, and the published prices.
type Wiring struct {
	Registry *agent.Registry // agents that can be named; nil is all of them
	Environ  []string        // KEY=value; nil is the environment of the process
	Spawner  ProcessSpawner  // runs the agents' programs; nil is that of this machine
	// Prices are the prices of models; nil is the published prices. Only the commands read
	// FIT_PRICES: a file that cannot be read must stop them before they spend money. A program sets
	// this field instead.
	Prices   session.Prices
	Warnings io.Writer // nil is standard error
	// WorkTracker is where agents keep track of work: github or filesystem. Empty is what
	// LIBHARNESS_WORK_TRACKER says, or github.
	WorkTracker string
	// Isolation says what separates agents from the rest of the machine: bwrap, none, or auto,
	// which is bwrap if it works. Empty is auto. An isolation in the options of a config wins.
	Isolation string
	// Network is what agents reach: host, the machine's network; model, their model and the tools
	// of the session and nothing else; none, which only the built-in agent can work with. Empty is
	// host.
	Network string
	// Calls says what happens to model calls, and where they are kept; nothing is kept by default.
	// The redactor is that of the session.
	Calls gateway.RecordConfig
	// OutputLimit is how many bytes an agent may print, all of which its trace keeps; 0 is 100 MB.
	OutputLimit int64
	// Secrets are redacted beyond those of the environment, by name.
	Secrets map[string]string
	// ToolServer says how agents reach the session's tools.
	ToolServer mcpserve.Config
	// OpenTrace, if set, opens the trace of a config that has neither Output nor Trace. It is
	// called when everything has been checked, with the redactor that the trace must have. The
	// caller closes the trace.
	OpenTrace func(*redact.Redactor) (*trace.Writer, error)
	// Ready, if set, is called when everything has been checked, before the first agent starts.
	Ready func(ReadySession)
}

// ReadySession is a session that is about to start.
type ReadySession struct {
	// Isolation is bwrap or none, and IsolationNote says what that means.
	Isolation     string
	IsolationNote string
	// Network is host, model or none, and NetworkNote says what that means.
	Network     string
	NetworkNote string
	Members     []AgentConfig // the lead first; of a run the one agent
}

// trackers are the conventions that agents know for keeping track of work, the default first.
var trackers = []string{"github", "filesystem"}

func (w Wiring) filled() Wiring {
	if w.Registry == nil {
		w.Registry = catalog.Default()
	}
	if w.Environ == nil {
		w.Environ = os.Environ()
	}
	if w.Prices == nil {
		w.Prices = session.ListPrices(price.Default())
	}
	if w.Warnings == nil {
		w.Warnings = os.Stderr
	}
	if w.Spawner == nil {
		w.Spawner = sandbox.NewSpawner()
	}
	return w
}

func (w Wiring) warnf(format string, args ...any) { fmt.Fprintf(w.Warnings, format+"\n", args...) }

func (w Wiring) ready(base agent.Config, note string, members ...AgentConfig) {
	if w.Ready != nil {
		w.Ready(ReadySession{
			Isolation:     base.Isolation.Kind,
			IsolationNote: note,
			Network:       base.NetworkKind(),
			NetworkNote:   networkNote(base.NetworkKind()),
			Members:       members,
		})
	}
}

// fillBase completes the configuration that all agents of a session start from.
func (w Wiring) fillBase(base *agent.Config) error {
	if base.Environ == nil {
		base.Environ = w.Environ
	}
	if cache, err := os.UserCacheDir(); err == nil && base.CacheDir == "" {
		base.CacheDir = filepath.Join(cache, "fit")
	}
	if base.Spawner == nil {
		base.Spawner = w.Spawner
	}
	if base.Prices == nil {
		base.Prices = w.Prices
	}
	base.OutputLimit = cmp.Or(base.OutputLimit, w.OutputLimit)
	base.ModelURL = cmp.Or(base.ModelURL, agent.Getenv(base.Environ, "FIT_MODEL_URL"))
	if base.ModelURL != "" && !IsURL(base.ModelURL) {
		return &ConfigError{"ModelURL", fmt.Errorf("%q is not a valid URL; it must start with http:// or https:// "+
			"and name a host", base.ModelURL)}
	}
	base.ProjectPrograms = base.ProjectPrograms || base.Context == ContextProject
	if base.Context != "" && !slices.Contains(Contexts, base.Context) {
		return &ConfigError{"Context", fmt.Errorf("there is no context %q; use %s", base.Context,
			strings.Join(Contexts, " or "))}
	}
	if err := w.decideGateway(base); err != nil {
		return err
	}
	tracker, err := w.tracker(base.Environ)
	base.ExtraEnv = append(slices.Clone(base.ExtraEnv), "LIBHARNESS_WORK_TRACKER="+tracker)
	return err
}

// IsURL reports whether an address is an HTTP URL with a host.
func IsURL(address string) bool {
	parsed, err := url.Parse(address)
	return err == nil && (parsed.Scheme == "http" || parsed.Scheme == "https") && parsed.Host != ""
}

func (w Wiring) tracker(environ []string) (string, error) {
	value, from := strings.TrimSpace(w.WorkTracker), "WorkTracker"
	for _, name := range []string{"LIBHARNESS_WORK_TRACKER", "LIBEVAL_WORK_TRACKER"} {
		if value == "" {
			value, from = strings.TrimSpace(agent.Getenv(environ, name)), name
		}
	}
	if value == "" {
		return trackers[0], nil
	}
	if !slices.Contains(trackers, value) {
		return "", &ConfigError{from, fmt.Errorf("there is no work tracker %q; use %s", value,
			strings.Join(trackers, " or "))}
	}
	return value, nil
}

// choose returns the agent with the id or, if it is empty, the first one installed.
func (w Wiring) choose(ctx context.Context, id string, base agent.Config) (agent.Agent, agent.Installation, error) {
	host := hostOf(base)
	if id == "" {
		return w.Registry.First(ctx, host)
	}
	chosen, err := w.Registry.Get(id)
	if err != nil {
		return nil, agent.Installation{}, &ConfigError{"Agent", err}
	}
	installation, err := chosen.Probe(ctx, host)
	return chosen, installation, err
}

// hostOf describes this machine for the search for installed agents.
func hostOf(base agent.Config) agent.Host {
	return agent.Host{Environ: base.Environ, Spawner: base.Spawner, CacheDir: base.CacheDir}
}

// NewRedactor is the function of the same name, with this wiring.
func (w Wiring) NewRedactor() *redact.Redactor {
	w = w.filled()
	extra := w.Registry.Secrets(w.Environ)
	maps.Copy(extra, w.Secrets)
	return redact.New(redact.Config{Environ: w.Environ, Extra: extra, Warn: w.Warnings})
}

// redactorOr returns the given redactor, or the default one if it is nil. Both learn the secrets
// that were made for the session.
func (w Wiring) redactorOr(given *redact.Redactor, secrets ...map[string]string) *redact.Redactor {
	if given == nil {
		given = w.NewRedactor()
	}
	for _, more := range secrets {
		given = given.With(more)
	}
	return given
}

// openTrace opens the trace that a config describes.
func (w Wiring) openTrace(given *trace.Writer, output io.Writer, redactor *redact.Redactor) (*trace.Writer, error) {
	switch {
	case given != nil:
		return given, nil
	case output != nil:
		return trace.NewWriter(output, trace.Config{Redactor: redactor}), nil
	default:
		return w.OpenTrace(redactor)
	}
}

// checkTrace makes sure that there will be a trace.
func (w Wiring) checkTrace(config string, given *trace.Writer, output io.Writer) error {
	if given == nil && output == nil && w.OpenTrace == nil {
		return &ConfigError{config + ".Output", errors.New("it is not set; the session needs a place for its trace")}
	}
	return nil
}

// newAgent returns the agent of a member from the registry.
func (w Wiring) newAgent(cfg AgentConfig) (agent.Agent, error) { return w.Registry.Get(cfg.Agent) }

// toolServer returns a function that connects the agents of a session to its tools, and the secrets
// that the connection uses.
func (w Wiring) toolServer(members int) (func(*harness.Dispatcher) (harness.Connector, error), map[string]string) {
	keys := mcpserve.NewKeyring(members)
	return keys.Connect(w.ToolServer), keys.Secrets()
}

// connect gives a session the connection to its tools and a redactor that knows all its secrets,
// and returns the thread that the environment names.
func (w Wiring) connect(options *Options, redactor **redact.Redactor, members []AgentConfig) *thread {
	connect, secrets := w.toolServer(len(members))
	if options.Connect == nil {
		options.Connect, options.ToolTransport = connect, w.transport()
	}
	thread := w.threadOf(options.Base.Environ)
	*redactor = w.redactorOr(*redactor, secrets, serverSecrets(members...), thread.secrets())
	return thread
}

// transport names how agents reach the session's tools.
func (w Wiring) transport() string {
	if w.ToolServer.HTTP {
		return transportHTTP
	}
	return "stdio"
}

// transportHTTP is the transport of agents that are given the address of the tool server.
const transportHTTP = "http"

// checkMembers makes sure that the agents of all members are installed and can do what is asked of
// them.
func (w Wiring) checkMembers(ctx context.Context, mode harness.Mode, options Options, members []AgentConfig) error {
	probed := map[string]agent.Installation{}
	for _, m := range members {
		played, err := w.Registry.Get(m.Agent)
		if err != nil {
			return &ConfigError{m.Name, err}
		}
		if info, err := os.Stat(m.Cwd); err != nil || !info.IsDir() {
			return &ConfigError{m.Name, fmt.Errorf("%s is not a directory", m.Cwd)}
		}
		if err := harness.CheckMember(played, mode, m, options); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		installation, known := probed[m.Agent]
		if !known {
			if installation, err = played.Probe(ctx, hostOf(options.Base)); err != nil {
				return fmt.Errorf("%s: %w", m.Name, err)
			}
			probed[m.Agent] = installation
		}
		settings := options.Base
		settings.Installation, settings.MCPServers = &installation, m.MCPServers
		settings.Model = cmp.Or(m.Model, settings.Model)
		if err := checkNetwork(played, settings); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return nil
}

// serverSecrets returns the credentials of attached servers, under names that a reader of the trace
// understands. The name of a setting decides whether it is a secret: most settings, such as a port,
// are not, and redacting them would make the trace unreadable.
func serverSecrets(members ...AgentConfig) map[string]string {
	secrets := map[string]string{}
	for _, member := range members {
		for _, server := range member.MCPServers {
			for _, values := range []map[string]string{server.Headers, server.Env} {
				for name, value := range values {
					if isSecretName(name) {
						secrets["MCP_"+server.Name+"_"+name] = withoutScheme(value)
					}
				}
			}
		}
	}
	return secrets
}

// withoutScheme returns the credential of an Authorization header.
func withoutScheme(value string) string {
	scheme, token, found := strings.Cut(value, " ")
	if found && (strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "Basic")) {
		return token
	}
	return value
}

func isSecretName(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"auth", "key", "token", "secret", "password", "cookie"},
		func(part string) bool { return strings.Contains(name, part) })
}
