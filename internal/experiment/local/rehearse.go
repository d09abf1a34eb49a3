package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/treatment"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/trace"
)

const (
	// rehearsalTimeout bounds one start, of a program that may take long on a busy machine.
	rehearsalTimeout = 5 * time.Minute
	// afterFirstReply is how long an agent may go on after the reply to its first request, which
	// holds all that is looked for.
	afterFirstReply = 10 * time.Second
	// secondTries is added to the numbers of starts that are tried again.
	secondTries = 10_000
)

// Rehearsed is what a rehearsal found.
type Rehearsed struct {
	experiment.Rehearsal
	// Problems are mistakes that no experiment may be run with.
	Problems []string
	// Unknown says of which arms nobody can know before they run whether they get what they bring.
	Unknown []string
	// Warnings are what else a person should know before spending.
	Warnings []string
}

// Rehearse starts every arm once, in a working directory of the first task, against a scripted
// model in this process: without a key, without cost. It finds out whether each arm's model is
// given what the arm declares, and in what the arms differ. Up to parallel arms start at a time.
func (e *Executor) Rehearse(ctx context.Context, parallel int) (*Rehearsed, error) {
	stage, err := e.openStage()
	if err != nil {
		return nil, err
	}
	found, err := stage.rehearse(ctx, parallel)
	return found, errors.Join(err, stage.close())
}

func (s *stage) rehearse(ctx context.Context, parallel int) (*Rehearsed, error) {
	if err := s.checkPrograms(ctx); err != nil {
		return nil, err
	}
	starts, err := s.startAll(ctx, parallel)
	if err != nil {
		return nil, err
	}
	found := &Rehearsed{}
	arms, noise := starts[:len(s.prepared.Arms)], starts[len(starts)-1]
	for _, one := range arms {
		problems, err := one.problems(arms)
		if err != nil {
			return nil, err
		}
		found.Problems = append(found.Problems, problems...)
		found.Arms = append(found.Arms, one.arm())
		found.Unknown = append(found.Unknown, one.unknown(notRecorded(&s.real.prepared.Setup))...)
	}
	later, err := s.unevenTasks(ctx, arms)
	if err != nil {
		return nil, err
	}
	found.Warnings = slices.Concat(found.Warnings, unevenInstructions(arms), later)
	for i := 1; i < len(arms); i++ {
		pair, problems, err := comparePair(arms[0], arms[i], noise, func() (*start, error) {
			return s.start(ctx, i, len(starts)+i)
		})
		if err != nil {
			return nil, err
		}
		found.Pairs = append(found.Pairs, pair)
		found.Problems = append(found.Problems, problems...)
	}
	return found, nil
}

// Offline reports whether the records of another experiment answer all model calls.
func (e *Executor) Offline() bool { return e.prepared.Offline() }

// stage is an executor whose agents talk to a scripted model.
type stage struct {
	*Executor
	real  *Executor
	model *scripted.Server
	dir   string // of its files
}

// openStage makes the executor of a rehearsal: the same experiment, with another model, without
// keys, budgets, faults and replays.
func (e *Executor) openStage() (*stage, error) {
	dir, err := os.MkdirTemp(e.work, "rehearsal-")
	if err != nil {
		return nil, err
	}
	script, err := scripted.New(rehearsalScript())
	if err != nil {
		return nil, err
	}
	server, err := scripted.Listen("127.0.0.1:0", scripted.NewServer(map[string]*scripted.Script{"": script},
		scripted.Options{}))
	if err != nil {
		return nil, err
	}
	prepared := *e.prepared
	prepared.Gateway, prepared.Record, prepared.Replay, prepared.Faults = "", calls.RecordBodies, "", nil
	prepared.CellBudget = experiment.Budget{}
	prepared.Arms = slices.Clone(prepared.Arms)
	s := &stage{real: e, model: server, dir: dir}
	s.Executor = &Executor{
		prepared:  &prepared,
		machine:   e.machine.withoutKeys(),
		artefacts: e.artefacts,
		work:      e.work,
		spawner:   e.spawner,
		tasks:     e.tasks,
		arms:      map[string]*experiment.Arm{},
		networks:  e.networks,
		ports:     e.ports,
		bases:     e.bases,
		caches:    e.caches,
		gateway: &gateway.OnDemand{Config: gateway.Config{
			Policy:   prepared.Policy,
			Dir:      dir,
			Redactor: e.machine.Redactor,
			Now:      e.machine.Now,
		}},
	}
	for i := range prepared.Arms {
		arm := &prepared.Arms[i]
		arm.ModelURL, arm.Env = server.URL, harmless(arm.Env)
		if arm.Auth == agent.AuthSubscription {
			arm.Auth = agent.AuthAPIKey
		}
		s.arms[arm.Name] = arm
	}
	return s, nil
}

func (s *stage) close() error {
	return errors.Join(s.gateway.Close(), s.model.Close(), scratch.RemoveAll(s.dir))
}

// withoutKeys returns the machine as an agent sees it that needs no credentials.
func (m *Machine) withoutKeys() *Machine {
	var keys []string
	for _, id := range m.Registry.IDs() {
		if chosen, err := m.Registry.Get(id); err == nil {
			keys = append(keys, chosen.Info().Credentials...)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	own := &Machine{
		Registry: m.Registry,
		Host:     m.Host,
		Prices:   m.Prices,
		Redactor: m.Redactor,
		Now:      m.Now,
		Engines:  m.Engines,
		found:    maps.Clone(m.found),
	}
	own.Host.Environ = slices.DeleteFunc(slices.Clone(m.Host.Environ), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains(keys, name)
	})
	return own
}

// harmless returns the variables of an arm without its secrets. A number is none, whatever the name
// of its variable.
func harmless(env map[string]string) map[string]string {
	kept := map[string]string{}
	for name, value := range env {
		if _, err := strconv.Atoi(value); err == nil || !Sensitive(name) {
			kept[name] = value
		}
	}
	return kept
}

// start is one start of an arm.
type start struct {
	attempt  *attempt
	planned  *experiment.PlannedArm
	declared *experiment.Arm // as the experiment has it
	real     *Executor       // of the experiment
	pieces   []treatment.Piece
	given    *ledger.Treatment
	first    *treatment.Start // nil: unknown
	calls    string           // the record of its calls
}

// startAll starts every arm once and, where arms are compared, the baseline once more: in what two
// starts of it differ, any two starts do.
func (s *stage) startAll(ctx context.Context, parallel int) ([]*start, error) {
	arms := len(s.prepared.Arms)
	order := make([]int, arms, arms+1)
	for i := range order {
		order[i] = i
	}
	if arms > 1 {
		order = append(order, 0)
	}
	starts := make([]*start, len(order))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, parallel))
	for number, arm := range order {
		group.Go(func() error {
			found, err := s.start(ctx, arm, number)
			if errors.Is(err, agent.ErrKilled) || errors.Is(err, sandbox.ErrBroken) {
				found, err = s.start(ctx, arm, secondTries+number)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				return &probeError{Who: "arm " + s.prepared.Arms[arm].Name, Err: err}
			}
			starts[number] = found
			return nil
		})
	}
	return starts, group.Wait()
}

// newAttempt is an attempt of an arm at a task that is not recorded.
func (s *stage) newAttempt(arm int, t *task.Task, number string) *attempt {
	a := &attempt{
		Executor: s.Executor,
		cell:     experiment.Cell{TaskID: "rehearsal", Arm: number},
		arm:      &s.prepared.Arms[arm],
		task:     t,
		dir:      filepath.Join(s.dir, number),
	}
	a.redact = s.machine.Redactor.With(secretsOf(t, a.arm, s.real.machine))
	return a
}

// start starts an arm.
func (s *stage) start(ctx context.Context, arm, number int) (*start, error) {
	a := s.newAttempt(arm, &s.prepared.Family.Tasks[0], strconv.Itoa(number))
	found := &start{
		attempt:  a,
		planned:  &s.prepared.Plan.Arms[arm],
		declared: &s.real.prepared.Arms[arm],
		real:     s.real,
		calls:    filepath.Join(a.dir, calls.Path(agentTrace)),
	}
	if err := os.Mkdir(a.dir, 0o700); err != nil {
		return nil, err
	}
	return found, a.inWorkspace(ctx, func(*attempt) error { return found.play(ctx) })
}

// play lets the agent make its first request.
func (s *start) play(ctx context.Context) error {
	a := s.attempt
	if err := a.takeStock(); err != nil {
		return err
	}
	unknown, err := s.perform(ctx)
	if err != nil {
		return err
	}
	s.given, err = treatment.Read(treatment.Config{
		Calls:       s.calls,
		Participant: agentLane,
		Context:     a.context(),
		Pieces:      a.stock.pieces,
		Redactor:    a.redact,
		Unknown:     unknown,
	})
	if err == nil && s.given.Unknown == "" {
		s.first, err = treatment.ReadStart(s.calls, agentLane)
	}
	if err == nil {
		s.given.Programs, s.given.Managed = a.stock.programs, a.stock.managed
	}
	s.pieces = a.stock.pieces
	return err
}

// RefusedError is a mistake in the setup that is found before anything is spent.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// perform starts the agent with its task, and its lead. It returns why nothing is known of the
// agent's first request; empty if it is in the record. An arm that its agent refuses, or in which
// nobody asks a model, is an error.
func (s *start) perform(ctx context.Context) (unknown string, refused error) {
	a := s.attempt
	chosen, err := a.machine.Registry.Get(a.arm.Agent)
	if err != nil {
		return err.Error(), nil
	}
	settings, _, err := a.agentConfig(chosen)
	if err != nil {
		return "it cannot start without its model: " + err.Error(), nil
	}
	if why := agent.WithoutGateway(chosen, settings); why != "" {
		return why, nil
	}
	if a.arm.Lead != "" {
		if err := s.performWithLead(ctx); err != nil || s.asked(true) {
			return "", err
		}
	}
	if a.calls, err = a.openCalls(agentTrace); err != nil {
		return err.Error(), nil
	}
	ctx, end, cancel := s.bounded(ctx)
	defer cancel()
	settings.Gateway = endedAfterReply(settings.Gateway, end)
	result, err := harness.Run(ctx, harness.RunConfig{
		Agent:   chosen,
		Session: settings,
		Task:    firstPrompt(a),
		Trace:   trace.NewWriter(io.Discard, trace.Config{}),
	})
	if closing := a.calls.Close(); closing != nil {
		return closing.Error(), nil
	}
	if refused := cmp.Or(err, result.Err); errors.As(refused, new(*agent.CapabilityError)) {
		return "", &RefusedError{refused}
	}
	if !s.asked(true) {
		end := ending{reason: result.Reason, err: cmp.Or(context.Cause(ctx), err, result.Err)}
		if errors.Is(end.err, agent.ErrKilled) { // not by what the arm says
			return "", end.err
		}
		return s.silent(a.arm.Agent, chosen, end.cause())
	}
	return "", nil
}

// firstPrompt is what the agent of the attempt is asked first.
func firstPrompt(a *attempt) string {
	if len(a.task.Steps) > 0 {
		return a.task.Steps[0].Prompt
	}
	return a.task.Prompt
}

// endedAfterReply ends a session some time after the first reply to a request of the agent with
// tools: some agents insist on a tool call, which the scripted model does not make.
func endedAfterReply(way agent.Gateway, end *time.Timer) agent.Gateway {
	join := way.Join
	var once sync.Once
	way.Join = func(cfg agent.Config, upstreams []gateway.Upstream) (*gateway.Seat, error) {
		before := cfg.Called
		cfg.Called = func(call calls.Call) {
			if before != nil {
				before(call)
			}
			if cfg.Name == agentLane && call.Tools > 0 && call.Status == http.StatusOK {
				once.Do(func() { end.Reset(afterFirstReply) })
			}
		}
		return join(cfg, upstreams)
	}
	return way
}

// arm summarises the start for the run directory.
func (s *start) arm() experiment.RehearsedArm {
	return experiment.RehearsedArm{
		Arm:          s.declared.Name,
		Agent:        s.declared.Agent,
		AgentVersion: s.planned.AgentVersion,
		Model:        s.declared.Model,
		Treatment:    s.given,
	}
}

// declares returns the pieces that the arm or its family brings.
func (s *start) declares() []treatment.Piece {
	return slices.DeleteFunc(slices.Clone(s.pieces),
		func(p treatment.Piece) bool { return p.From == ledger.FromTask })
}

// unknown says what nobody can know about the arm: it could not be rehearsed, or the experiment
// keeps no record of what its models are sent.
func (s *start) unknown(notRecorded string) []string {
	why := cmp.Or(s.given.Unknown, notRecorded)
	if why == "" || len(s.declares()) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("arm %s: whether its model is given %s is unknown: %s", s.declared.Name,
		pieceName(s.declares()[0].Piece), why)}
}
