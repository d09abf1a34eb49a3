package experiment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/harness"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/task"
	"github.com/fit-eval/fit/trace"
)

// Setup is an experiment as a person describes it: a family, arms, and how often. Plan turns it
// into what is measured.
type Setup struct {
	Family *task.Family
	// Only names the tasks to run; empty is all.
	Only []string
	Arms []Arm
	Runs int
	Seed uint64
	// Shard is the part that this process runs.
	Shard        Shard
	Isolation    string
	CellBudget   Budget
	AgentTimeout time.Duration
	// StopEarly ends the experiment as soon as its two arms are told apart; nil runs it to its end.
	StopEarly *StopRule
	// Judge judges tasks that have a judge; an empty Agent is the agent of the first arm.
	Judge JudgeConfig
	// DefaultMaxTurns bounds the turns of arms that do not say, where their agent can be bounded; 0
	// does not.
	DefaultMaxTurns int
	// NodeModules is a directory that becomes node_modules in every working directory; empty: none.
	NodeModules string
	// Skills is a directory that contains .claude, for arms that name none; empty: the family's.
	Skills   string
	Registry *agent.Registry
	Host     agent.Host
	// Prices tell what tokens cost; budgets in dollars need them.
	Prices session.Prices
	Tools  map[string]string
	// KeepRaw leaves traces as they were written instead of packing them.
	KeepRaw bool
	// Commands are names under which hooks find the program that runs now, such as fit-trace.
	Commands []string
	Now      func() time.Time
}

// Prepared is an experiment that is checked and ready: every agent in it was found.
type Prepared struct {
	Setup
	Plan          *Plan
	Installations map[string]agent.Installation
	SkillHashes   map[string]string
	// Scratch is where the probe works; empty is the system's directory for temporary files.
	Scratch string
}

// UnknownTaskError names a task that the family does not have, and those it has.
type UnknownTaskError struct {
	ID    string
	Known []string
}

func (e *UnknownTaskError) Error() string {
	return fmt.Sprintf("no task %q; there are %s", e.ID, strings.Join(e.Known, ", "))
}

// Prepare checks an experiment and makes its plan, before a cent is spent.
func Prepare(ctx context.Context, s Setup) (*Prepared, error) {
	if s.Now == nil {
		s.Now = time.Now
	}
	p := &Prepared{Setup: s, Installations: map[string]agent.Installation{}, SkillHashes: map[string]string{}}
	if err := p.chooseTasks(); err != nil {
		return nil, err
	}
	if err := p.chooseAgents(ctx); err != nil {
		return nil, err
	}
	if err := p.sealArms(); err != nil {
		return nil, err
	}
	p.Plan = &Plan{
		CreatedMs:      s.Now().UnixMilli(),
		Runs:           s.Runs,
		Seed:           s.Seed,
		Shard:          s.Shard,
		Isolation:      s.Isolation,
		Cell:           s.CellBudget,
		Stop:           s.StopEarly,
		AgentTimeoutMs: s.AgentTimeout.Milliseconds(),
		Tools:          s.Tools,
		Family:         PlannedFamily{Origin: s.Family.Origin, Name: s.Family.Name, Revision: s.Family.Revision},
	}
	if host, err := os.Hostname(); err == nil {
		p.Plan.Host = host
	}
	p.planTasks()
	for _, arm := range p.Arms {
		p.Plan.Arms = append(p.Plan.Arms,
			PlannedArm{Arm: arm, AgentVersion: p.Installations[arm.Agent].Version,
				LeadVersion: p.Installations[arm.Lead].Version})
	}
	return p, p.Plan.Seal()
}

func (p *Prepared) chooseTasks() error {
	if len(p.Only) == 0 {
		return nil
	}
	var known []string
	chosen := *p.Family
	chosen.Tasks = nil
	for _, t := range p.Family.Tasks {
		known = append(known, t.ID)
		if slices.Contains(p.Only, t.ID) {
			chosen.Tasks = append(chosen.Tasks, t)
		}
	}
	for _, id := range p.Only {
		if !slices.Contains(known, id) {
			return &UnknownTaskError{ID: id, Known: known}
		}
	}
	p.Family = &chosen
	return nil
}

// chooseAgents finds every agent that takes part; one that nobody named is the first that is
// installed.
func (p *Prepared) chooseAgents(ctx context.Context) error {
	p.Arms = slices.Clone(p.Arms)
	if err := CheckArms(p.Arms); err != nil {
		return err
	}
	for i := range p.Arms {
		arm := &p.Arms[i]
		if arm.Agent == "" {
			found, installation, err := p.Registry.First(ctx, p.Host)
			if err != nil {
				return err
			}
			arm.Agent = string(found.Info().ID)
			p.Installations[arm.Agent] = installation
		}
		for _, id := range []string{arm.Agent, arm.Lead} {
			if err := p.find(ctx, id); err != nil {
				return fmt.Errorf("arm %s: %w", arm.Name, err)
			}
		}
		if err := p.checkAbilities(arm); err != nil {
			return fmt.Errorf("arm %s: %w", arm.Name, err)
		}
	}
	if p.Judge.Votes < 0 || p.Judge.Votes > 0 && p.Judge.Votes%2 == 0 {
		return fmt.Errorf("%d votes of the judge can be split evenly: give an odd number", p.Judge.Votes)
	}
	if !p.judged() {
		p.Judge = JudgeConfig{}
		return nil
	}
	if p.Judge.Agent == "" {
		p.Judge.Agent = p.Arms[0].Agent
		if p.Judge.ModelURL == "" {
			p.Judge.ModelURL = p.Arms[0].ModelURL
		}
	}
	return p.find(ctx, p.Judge.Agent)
}

// checkAbilities makes sure that the agent of an arm can do what the arm asks of it, before a grid
// of cells finds out.
func (p *Prepared) checkAbilities(arm *Arm) error {
	chosen, err := p.Registry.Get(arm.Agent)
	if err != nil {
		return err
	}
	info := chosen.Info()
	if arm.MaxTurns == 0 && info.Capabilities.MaxTurns != agent.Unsupported {
		arm.MaxTurns = p.DefaultMaxTurns
	}
	asked := agent.Config{
		Dir:          ".",
		Home:         ".",
		Environ:      p.Host.Environ,
		Model:        arm.Model,
		ModelURL:     arm.ModelURL,
		Auth:         arm.Auth,
		MaxTurns:     arm.MaxTurns,
		MaxCostUSD:   p.CellBudget.USD,
		AllowedTools: arm.AllowedTools,
		SystemPrompt: arm.Prompt + arm.Profile,
		Prices:       p.Prices,
	}
	if arm.Lead == "" {
		return impossible(chosen, asked)
	}
	asked.MCPServers = []agent.MCPServer{{Name: harness.ServerName}}
	if err := impossible(chosen, asked); err != nil {
		return err
	}
	lead, err := p.Registry.Get(arm.Lead)
	if err != nil {
		return err
	}
	asked.Model, asked.MaxTurns, asked.AllowedTools, asked.SystemPrompt = arm.LeadModel, 0, nil, ""
	return impossible(lead, asked)
}

// impossible is why an agent can never do what is asked of it. What it only lacks on this machine,
// such as credentials, is left to the probe: a plan can be made without.
func impossible(a agent.Agent, asked agent.Config) error {
	err := agent.Check(a, asked)
	var refused *agent.CapabilityError
	if !errors.As(err, &refused) {
		return nil
	}
	return err
}

// checkProfile looks for an arm's profile in the skills that are staged and in the files of the
// tasks.
func (p *Prepared) checkProfile(arm *Arm) error {
	if arm.Profile == "" {
		return nil
	}
	name := filepath.Join(".claude", "agents", arm.Profile+".md")
	if arm.Skills != "" {
		if _, err := os.Stat(filepath.Join(arm.Skills, name)); err == nil {
			return nil
		}
	}
	for i := range p.Family.Tasks {
		found := false
		for _, overlay := range p.Family.Tasks[i].Overlays {
			if _, err := os.Stat(filepath.Join(overlay.From, name)); err == nil &&
				(overlay.To == "" || overlay.To == ".") {
				found = true
			}
		}
		if !found {
			return fmt.Errorf("arm %s: there is no profile %s: %s is neither in its skills nor in the files of task %s",
				arm.Name, arm.Profile, name, p.Family.Tasks[i].ID)
		}
	}
	return nil
}

func (p *Prepared) judged() bool {
	return slices.ContainsFunc(p.Family.Tasks, func(t task.Task) bool { return t.JudgeTemplate != "" })
}

func (p *Prepared) find(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	found, err := p.Registry.Get(id)
	if err != nil {
		return err
	}
	if _, known := p.Installations[id]; known {
		return nil
	}
	installation, err := found.Probe(ctx, p.Host)
	if err != nil {
		return err
	}
	p.Installations[id] = installation
	return nil
}

// sealArms fills in the skills that arms share, and hashes all that makes an arm.
func (p *Prepared) sealArms() error {
	for i := range p.Arms {
		arm := &p.Arms[i]
		if arm.Skills == "" {
			arm.Skills = p.Skills
		}
		if arm.Skills == "" {
			arm.Skills = p.Family.Skills
		}
		if arm.Skills != "" {
			absolute, err := filepath.Abs(arm.Skills)
			if err != nil {
				return err
			}
			arm.Skills = absolute
			if info, err := os.Stat(filepath.Join(absolute, ".claude")); err != nil || !info.IsDir() {
				return fmt.Errorf("skills of arm %s: %s has no directory .claude", arm.Name, arm.Skills)
			}
			digest, err := TreeDigest(filepath.Join(absolute, ".claude"))
			if err != nil {
				return fmt.Errorf("skills of arm %s: %w", arm.Name, err)
			}
			p.SkillHashes[arm.Name] = digest
		}
		if err := p.checkProfile(arm); err != nil {
			return err
		}
		if err := arm.Seal(); err != nil {
			return err
		}
	}
	return nil
}

func (p *Prepared) planTasks() {
	for i := range p.Family.Tasks {
		t := &p.Family.Tasks[i]
		p.Plan.Tasks = append(p.Plan.Tasks, PlannedTask{
			ID:      t.ID,
			Visible: t.Digest.Visible,
			Hidden:  t.Digest.Hidden,
			Cluster: t.Settings.Cluster,
			Tags:    t.Settings.Tags,
			Scored:  t.Settings.Scored,
			Judged:  t.JudgeTemplate != "",
		})
	}
	if p.judged() {
		sum := sha256.Sum256([]byte(p.Family.JudgeProfile))
		p.Plan.Judge = PlannedJudge{
			Agent:   p.Judge.Agent,
			Model:   p.Judge.Model,
			Profile: hex.EncodeToString(sum[:8]),
			Votes:   p.Judge.Votes,
		}
	}
}

// Local makes the executor for a run directory. Its workspaces lie in a private temporary directory
// that belongs to the run directory, so that the next process finds what this one leaves if it is
// killed.
func (p *Prepared) Local(dir string, redactor *redact.Redactor) (*Local, error) {
	work, err := WorkDir(dir)
	if err != nil {
		return nil, err
	}
	cfg := LocalConfig{
		Dir:           dir,
		Work:          work,
		Family:        p.Family,
		Arms:          p.Arms,
		Registry:      p.Registry,
		Installations: p.Installations,
		SkillHashes:   p.SkillHashes,
		Environ:       p.Host.Environ,
		Redactor:      redactor,
		Spawner:       p.Host.Spawner,
		Isolation:     p.Isolation,
		AgentTimeout:  p.AgentTimeout,
		CellBudget:    p.CellBudget,
		Prices:        p.Prices,
		Judge:         p.Judge,
		Tools:         p.Tools,
		Host:          p.Plan.Host,
		KeepFinal:     true,
		KeepRaw:       p.KeepRaw,
		NodeModules:   p.NodeModules,
		Commands:      p.Commands,
		Now:           p.Now,
	}
	if p.Host.CacheDir != "" {
		cfg.CacheDir = filepath.Join(p.Host.CacheDir, "build")
	}
	return NewLocal(cfg)
}

// WorkDir is where the workspaces of a run directory lie.
func WorkDir(dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(absolute); err == nil {
		absolute = real
	}
	sum := sha256.Sum256([]byte(absolute))
	return filepath.Join(os.TempDir(), fmt.Sprintf("fit-work-%d-%s", os.Getuid(), hex.EncodeToString(sum[:6]))), nil
}

// probeTimeout bounds the credential probe.
const probeTimeout = 2 * time.Minute

// ProbeError says that an arm's model cannot be used.
type ProbeError struct {
	Arm string
	Err error
}

func (e *ProbeError) Error() string {
	return fmt.Sprintf("arm %s: the model does not answer: %v", e.Arm, e.Err)
}
func (e *ProbeError) Unwrap() error { return e.Err }

// Probe asks the model of every different arm one small thing, so that wrong credentials, a wrong
// address or a wrong model's name cost one call and not a grid.
func (p *Prepared) Probe(ctx context.Context) error {
	asked := map[[4]string]bool{}
	for _, arm := range p.Arms {
		key := [4]string{arm.Agent, arm.Model, arm.ModelURL, arm.Auth}
		if asked[key] {
			continue
		}
		asked[key] = true
		if err := p.probe(ctx, &arm); err != nil {
			return &ProbeError{Arm: arm.Name, Err: err}
		}
	}
	return nil
}

func (p *Prepared) probe(ctx context.Context, arm *Arm) error {
	if p.Scratch != "" {
		if err := os.MkdirAll(p.Scratch, 0o700); err != nil {
			return err
		}
	}
	room, err := os.MkdirTemp(p.Scratch, "fit-probe-")
	if err != nil {
		return err
	}
	defer func() { _ = RemoveAll(room) }()
	for _, dir := range []string{"work", "home"} {
		if err := os.Mkdir(filepath.Join(room, dir), 0o700); err != nil {
			return err
		}
	}
	chosen, err := p.Registry.Get(arm.Agent)
	if err != nil {
		return err
	}
	installation := p.Installations[arm.Agent]
	settings := agent.Config{
		Dir:          filepath.Join(room, "work"),
		Home:         filepath.Join(room, "home"),
		Environ:      p.Host.Environ,
		Model:        arm.Model,
		ModelURL:     Cell{TaskID: "probe", Arm: arm.Name}.fillURL(arm.ModelURL),
		Auth:         arm.Auth,
		Installation: &installation,
		Spawner:      p.Host.Spawner,
	}
	if chosen.Info().Capabilities.MaxTurns != agent.Unsupported {
		settings.MaxTurns = 1
	}
	result, err := harness.Run(ctx, harness.RunConfig{
		Agent:   chosen,
		Session: settings,
		Task:    "Reply with the single word ready. Use no tool.",
		Timeout: probeTimeout,
		Trace:   trace.NewWriter(discard{}, trace.Config{}),
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case result.Reason == session.OutcomeAuth || result.Reason == session.OutcomeProvider ||
		result.Reason == session.OutcomeTimeout:
		return errors.Join(result.Err, fmt.Errorf("the probe ended with %s", result.Reason))
	}
	return nil // whatever else it did, it reached its model
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
