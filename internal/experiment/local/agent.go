package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/egress"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/profile"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/workspace"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// submissionLimit is how much of the agent's last message the ledger keeps; the trace has all of
// it.
const submissionLimit = 16 << 10

// runAgent lets the agent work. How it ends decides only whether there is something to grade: an
// agent that failed, ran out of turns or crashed is graded like any other; a failure of the model's
// service is missing data.
func (a *attempt) runAgent(ctx context.Context) bool {
	a.pauses = watchPauses(time.Second)
	defer a.pauses.close()
	if a.arm.Lead != "" {
		return a.supervise(ctx)
	}
	chosen, err := a.machine.Registry.Get(a.arm.Agent)
	if err != nil {
		return a.fail(ctx, ledger.ErrorSetup, err)
	}
	settings, injections, err := a.agentConfig(chosen)
	if err != nil {
		class := ledger.ErrorSetup
		if errors.As(err, new(*agent.AuthError)) {
			class = ledger.ErrorAuth
		}
		return a.fail(ctx, class, err)
	}
	writer, err := a.openAgentTrace()
	if err != nil {
		return a.fail(ctx, ledger.ErrorInternal, err)
	}
	a.record.AgentTracePath = a.artefact(agentTrace)
	if a.calls, err = a.openCalls(agentTrace); err != nil {
		_ = writer.Close() // it holds nothing
		return a.fail(ctx, ledger.ErrorSetup, err)
	}
	cfg := harness.RunConfig{
		Agent:      chosen,
		Session:    settings,
		Task:       a.task.Prompt,
		Injections: injections,
		Timeout:    a.agentTimeout(a.task.Settings.Timeouts.Agent),
		Held:       a.held,
		Trace:      writer,
		Started:    a.started,
	}
	run := a.runSession
	if len(a.task.Steps) > 0 {
		run = a.runSteps
	}
	goOn := run(ctx, cfg)
	if err := writer.Close(); err != nil && goOn {
		a.fail(ctx, ledger.ErrorAgentStart, err)
		goOn = false
	}
	a.keepCalls()
	return a.settleTreatment(ctx, goOn)
}

// runSession lets the agent do one prompt, and adds its usage to that of earlier ones.
func (a *attempt) runSession(ctx context.Context, cfg harness.RunConfig) bool {
	result, err := harness.Run(ctx, cfg)
	a.record.Turns += result.Turns
	if a.record.Outcome == "" || a.record.Outcome == string(session.OutcomeSuccess) {
		a.record.Outcome = string(result.Reason)
	}
	a.used = addUsage(a.used, result.Usage)
	a.spend(a.used)
	a.answer, a.record.Submission = result.Text, a.kept(result.Text)
	a.record.AgentArgv = a.withoutPlace(result.Output.Argv)
	return a.agentEnded(ctx, ending{
		reason:  result.Reason,
		err:     result.Err,
		aborted: result.Aborted,
		turns:   result.Turns,
	}, err)
}

func (a *attempt) started(info agent.Started) {
	a.record.KeyVisible, a.record.AuthMode = info.KeyVisible, info.Auth
	a.record.Gateway, a.record.GatewayReason = info.Gateway, info.GatewayReason
	if info.Version != "" {
		a.record.AgentVersion = info.Version
	}
	if info.Model != "" {
		a.record.Model.Agent = info.Model
	}
	a.step(stepStarted, strings.TrimSpace(a.arm.Agent+" "+a.record.AgentVersion))
}

// withoutPlace returns a command line with placeholders for the directory of the attempt and the
// address of the gateway, so that all attempts of an arm have the same.
func (a *attempt) withoutPlace(argv []string) []string {
	words := []string{a.space.Root, "{workspace}"}
	if url := a.gateway.URL(); url != "" {
		words = append(words, url, "{gateway}")
	}
	replacer := strings.NewReplacer(words...)
	alike := make([]string, 0, len(argv))
	for _, word := range argv {
		alike = append(alike, replacer.Replace(word))
	}
	return alike
}

// agentConfig returns the settings of the agent: its workspace, and what the arm says.
func (a *attempt) agentConfig(chosen agent.Agent) (agent.Config, []session.SystemPromptInjection, error) {
	place := a.space.Agent()
	cfg := a.placeConfig(place, a.arm.Agent)
	cfg.Model, cfg.Auth = a.arm.Model, a.arm.Auth
	cfg.ModelURL = modelURL(&a.prepared.Setup, a.cell.ModelURL(a.arm.ModelURL))
	cfg.AllowedTools = a.arm.AllowedTools
	cfg.Context = a.arm.ContextFor(a.task)
	cfg.Settings, cfg.Effort, cfg.Temperature = a.arm.Settings, a.arm.Effort, a.arm.Temperature
	var err error
	if cfg.MCPServers, err = a.serversOf(place.Dir); err != nil {
		return cfg, nil, err
	}
	given, err := a.profile(place.Dir)
	if err != nil {
		return cfg, nil, err
	}
	cfg = withProfile(cfg, given)
	cfg.MaxTurns = a.turns(given, chosen.Info())
	injections := given.Injections
	if a.arm.Prompt != "" {
		injections = append(injections,
			session.SystemPromptInjection{Source: "append", Label: a.arm.Name, Content: a.arm.Prompt})
	}
	cfg.SystemPrompt = profile.Join(given.SystemPrompt, a.arm.Prompt)
	a.noteNetwork(cfg)
	return cfg, injections, agent.Check(chosen, cfg)
}

// cheaper returns the smaller of two limits in dollars: that of every cell, and the task's own.
// Zero is no limit.
func cheaper(usd float64, t *task.Task) float64 {
	if t.Spec == nil || t.Spec.MaxCostUSD == nil || usd > 0 && usd < *t.Spec.MaxCostUSD {
		return usd
	}
	return *t.Spec.MaxCostUSD
}

// noteNetwork records what the agent reaches.
func (a *attempt) noteNetwork(cfg agent.Config) {
	a.record.Network = cfg.NetworkKind()
	a.record.AgentNetwork = a.record.Network == sandbox.NetworkHost
	if len(a.registries()) > 0 {
		a.record.Network = sandbox.NetworkRegistries
	}
}

// placeConfig puts an agent into a place.
func (a *attempt) placeConfig(place workspace.Place, id string) agent.Config {
	installation, known := a.installationOf(id)
	if a.watched == nil {
		a.watched = &watchedSpawner{ProcessSpawner: a.spawner}
	}
	cfg := agent.Config{
		Dir:       place.Dir,
		Home:      place.Home,
		Environ:   environOf(a.machine.Host.Environ, place.Env),
		CacheDir:  a.machine.Host.CacheDir,
		ExtraEnv:  extraEnv(place.Env),
		Prices:    a.machine.Prices,
		Redactor:  a.redact,
		Spawner:   a.watched,
		Isolation: place.Isolation,
		Network:   a.networkOf(a.arm, a.task),
		Doors:     a.doors(),
		Limits:    place.Limits,
		Gateway:   a.throughGateway(),
		Account:   a.account,

		ProjectPrograms: a.mayRunPrograms(),
		OutputLimit:     a.machine.OutputLimit,
	}
	if len(a.registries()) > 0 {
		cfg.ExtraEnv = append(cfg.ExtraEnv, egress.Variables()...)
	}
	if known {
		cfg.Installation = &installation
	}
	return cfg
}

// environOf returns the environment that an agent takes its credentials from, with the search path
// of the place.
func environOf(environ []string, place sandbox.Environment) []string {
	own := slices.Clone(environ)
	if path := place["PATH"]; path != "" {
		own = append(own, "PATH="+path)
	}
	return own
}

// extraEnv returns what a place adds to the common variables: the task's and the arm's own, the
// port, the mark of the run. The agent sets its home and temporary directory itself, because it
// keeps its own files separate from its work.
func extraEnv(place sandbox.Environment) []string {
	common := sandbox.CommonNames()
	var extra []string
	for _, pair := range place.List() {
		name, _, _ := strings.Cut(pair, "=")
		if name == sandbox.RunMarker || !slices.Contains(common, name) {
			extra = append(extra, pair)
		}
	}
	return extra
}

// openAgentTrace opens the trace of the attempt's agents.
func (a *attempt) openAgentTrace() (*trace.Writer, error) {
	writer, err := a.openTrace(agentTrace)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.agentLines = writer
	return writer, err
}

func (a *attempt) openTrace(name string) (*trace.Writer, error) {
	return trace.Open(filepath.Join(a.dir, name), trace.Config{Redactor: a.redact})
}

// artefact returns the path of an artefact relative to the run directory, as records have it.
func (a *attempt) artefact(name string) string { return path.Join(a.record.RunDir, name) }

// spend records what the agent has consumed. Uncounted consumption is unknown, which is not zero:
// an agent whose calls the gateway sees and that made none has consumed nothing.
func (a *attempt) spend(u session.TokenUsage) {
	a.record.CostUSD, a.record.CostSource = u.CostUSD, u.CostSource
	if u.TotalTokens == 0 && u.CostUSD == nil && a.record.Turns == 0 && a.record.Gateway == gateway.On {
		nothing := 0.0
		a.record.CostUSD, a.record.CostSource = &nothing, session.CostWire
	}
	if free := a.record.CostUSD != nil && *a.record.CostUSD == 0; u.TotalTokens == 0 && !free {
		a.record.Tokens = nil
		return
	}
	a.record.Tokens = new(ledger.UsageJSON(u))
}

// kept returns what the ledger keeps of a text: redacted first, because a secret that was cut is no
// longer recognised.
func (a *attempt) kept(text string) string {
	return display.CutBytes(a.redact.String(text), submissionLimit)
}

// Recover implements Recoverer: it reads from the trace of a killed attempt what it cost,
// and removes what it left.
func (e *Executor) Recover(_ context.Context, cell experiment.Cell, number int) ledger.Record {
	record := e.blank(cell, number)
	a := attempt{Executor: e, record: record, dir: e.artefacts.AttemptDir(record.RunDir)}
	name := agentTrace
	// crashed after the attempt finished but before it was recorded
	if _, err := os.Stat(filepath.Join(a.dir, name)); errors.Is(err, fs.ErrNotExist) {
		name += packedSuffix
	}
	used, turns, err := a.readUsage(name, nil)
	if err != nil {
		return record
	}
	a.record.AgentTracePath = a.artefact(name)
	a.nameCalls()
	a.record.Turns = turns
	a.spend(used)
	if err := a.keep(); err != nil {
		a.note("artefacts: %v", err)
	}
	return a.record
}

// readUsage reads from a trace of the attempt what all participants consumed, and how many turns
// that took.
func (a *attempt) readUsage(name string, onEvent func(*session.EnrichedEvent)) (session.TokenUsage, int, error) {
	sessions, err := session.ReadFile(filepath.Join(a.dir, name), a.machine.Registry.Dialects(),
		session.Options{Prices: a.machine.Prices, Flat: true, OnEvent: onEvent})
	var sum session.TokenUsage
	turns := 0
	for _, s := range sessions {
		sum = addUsage(sum, s.Usage)
		turns += s.Turns
	}
	return sum, turns, err
}

func addUsage(a, b session.TokenUsage) session.TokenUsage {
	known := a.TotalTokens == 0 || a.CostUSD != nil
	a.Add(b)
	switch {
	case b.TotalTokens == 0 && b.CostUSD == nil:
	case !known || b.CostUSD == nil:
		a.CostUSD, a.CostSource = nil, session.CostUnknown
	default:
		cost := *b.CostUSD
		if a.CostUSD != nil {
			cost += *a.CostUSD
		}
		a.CostUSD, a.CostSource = &cost, b.CostSource
	}
	return a
}

// agentTimeout returns the shortest of what the task, the experiment and the budget of a cell
// allow.
func (a *attempt) agentTimeout(limit time.Duration) time.Duration {
	if limit <= 0 {
		limit = defaultAgentTimeout
	}
	for _, bound := range []time.Duration{a.prepared.AgentTimeout, a.prepared.CellBudget.Wall} {
		if bound > 0 {
			limit = min(limit, bound)
		}
	}
	return limit
}

// secretsOf returns the values that must not appear in anything that is written about an attempt.
func secretsOf(t *task.Task, arm *experiment.Arm, machine *Machine) map[string]string {
	secrets := t.Secrets()
	add := func(values map[string]string) {
		for name, value := range values {
			if Sensitive(name) {
				secrets[name] = value
			}
		}
	}
	add(arm.Env)
	servers, _ := armServers(arm, machine.getenv(), "") // one that is wrong is refused before the first attempt
	for _, s := range servers {
		add(s.Env)
		add(s.Headers)
	}
	return secrets
}

// Sensitive reports whether a variable's name says that its value is a secret.
func Sensitive(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc([]string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH"},
		func(word string) bool { return strings.Contains(name, word) })
}
