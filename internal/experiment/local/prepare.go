package local

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/task"
)

// UnknownTaskError names a task that the family does not have, and those it has.
type UnknownTaskError struct {
	ID    string
	Known []string
}

func (e *UnknownTaskError) Error() string {
	return fmt.Sprintf("no task %q; there are %s", e.ID, strings.Join(e.Known, ", "))
}

// Prepare checks an experiment and makes its plan, before any money is spent: every agent is found
// on this machine, and everything that an arm asks for can be done.
func Prepare(ctx context.Context, setup experiment.Setup, machine *Machine) (*experiment.Prepared, error) {
	p := &preparation{
		Prepared: experiment.Prepared{
			Setup:       setup,
			Brings:      map[string][]experiment.Bring{},
			SkillHashes: map[string]string{},
		},
		machine: machine,
	}
	for _, step := range []func(context.Context) error{
		p.chooseTasks, p.chooseAgents, p.checkSteps, p.checkServers, p.checkImages, p.checkNetworks, p.checkTaken,
		p.sealArms,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	if err := p.plan(); err != nil {
		return nil, err
	}
	return &p.Prepared, nil
}

// preparation is an experiment while it is prepared.
type preparation struct {
	experiment.Prepared
	machine *Machine
	of      int // tasks of the family, of which some were chosen
	leftOut []task.LeftOut
}

// plan makes the plan of what was chosen.
func (p *preparation) plan() error {
	output := p.machine.OutputLimit
	if output == agent.DefaultOutput {
		output = 0
	}
	p.Plan = &experiment.Plan{
		CreatedMs:      p.machine.now().UnixMilli(),
		Runs:           p.Runs,
		Seed:           p.Seed,
		Shard:          p.Shard,
		Isolation:      p.Isolation,
		Network:        p.Network,
		Cell:           p.CellBudget,
		Faults:         p.Faults.Digest(),
		Gateway:        p.Digest(),
		Policy:         p.Text(),
		MaxOutput:      output,
		Stop:           p.StopEarly,
		Question:       new(p.Question),
		AgentTimeoutMs: p.AgentTimeout.Milliseconds(),
		Tools:          p.Tools,
		Family: experiment.PlannedFamily{
			Origin:   p.Family.Origin,
			Name:     p.Family.Name,
			Revision: p.Family.Revision,
			Tasks:    p.of,
			Selected: p.Selected,
			LeftOut:  p.leftOut,
		},
	}
	*p.Plan.Question = p.Plan.Asked()
	if host, err := os.Hostname(); err == nil {
		p.Plan.Host = host
	}
	p.planTasks()
	for _, arm := range p.Arms {
		planned := experiment.PlannedArm{
			Arm:          arm,
			AgentVersion: p.machine.installation(arm.Agent).Version,
			LeadVersion:  p.machine.installation(arm.Lead).Version,
		}
		for _, b := range p.Brings[arm.Name] {
			planned.Brings = append(planned.Brings, b.Brought)
		}
		p.Plan.Arms = append(p.Plan.Arms, planned)
	}
	return p.Plan.Seal()
}

func (p *preparation) chooseTasks(context.Context) error {
	all, leftOut := len(p.Family.Tasks)+len(p.Family.LeftOut), slices.Clone(p.Family.LeftOut)
	if err := p.onlyNamed(); err != nil {
		return err
	}
	chosen := *p.Family
	chosen.Tasks = nil
	for _, t := range p.Family.Tasks {
		if t.Instance == nil || len(t.Instance.Lacks) == 0 {
			chosen.Tasks = append(chosen.Tasks, t)
			continue
		}
		lacks := "the row has no " + strings.Join(t.Instance.Lacks, ", ")
		leftOut = append(leftOut, task.LeftOut{Task: t.ID, Reason: lacks})
	}
	if len(chosen.Tasks) == 0 && len(p.Family.Tasks) > 0 {
		return fmt.Errorf("no task can be graded: the row of %s has no %s; use rows of SWE-bench 5.x, which have it",
			p.Family.Tasks[0].ID, strings.Join(p.Family.Tasks[0].Instance.Lacks, ", "))
	}
	if p.leftOut = leftOut; len(leftOut) > 0 || len(p.Only) > 0 {
		p.of = all
	}
	p.Family = &chosen
	return nil
}

// onlyNamed keeps the tasks that were asked for.
func (p *preparation) onlyNamed() error {
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

// chooseAgents finds every agent that takes part; an agent that is not named is the first that is
// installed.
func (p *preparation) chooseAgents(ctx context.Context) error {
	p.Arms = slices.Clone(p.Arms)
	for i := range p.Arms {
		arm := &p.Arms[i]
		if arm.Context = cmp.Or(arm.Context, p.Context); arm.Context == agent.ContextProject {
			p.ProjectPrograms = append(p.ProjectPrograms, arm.Name)
		}
	}
	if err := experiment.CheckArms(p.Arms); err != nil {
		return err
	}
	for i := range p.Arms {
		arm := &p.Arms[i]
		if arm.Agent == "" {
			var err error
			if arm.Agent, err = p.machine.first(ctx); err != nil {
				return err
			}
		}
		for _, id := range []string{arm.Agent, arm.Lead} {
			if err := p.machine.find(ctx, id); err != nil {
				return fmt.Errorf("arm %s: %w", arm.Name, err)
			}
		}
		if err := p.checkAbilities(arm); err != nil {
			return fmt.Errorf("arm %s: %w", arm.Name, err)
		}
	}
	switch votes := p.Judge.Votes; {
	case votes < 0:
		return fmt.Errorf("judge votes: %d must be at least 1", votes)
	case votes > 0 && votes%2 == 0:
		return fmt.Errorf("judge votes: %d can tie; use an odd number", votes)
	}
	if !p.judged() {
		p.Judge = experiment.JudgeConfig{}
		return nil
	}
	if p.Judge.Agent == "" {
		p.Judge.Agent = p.Arms[0].Agent
		if p.Judge.ModelURL == "" {
			p.Judge.ModelURL = p.Arms[0].ModelURL
		}
	}
	p.Judge.Default = p.defaultModel(p.Judge.Agent, p.Judge.ModelURL)
	if err := p.checkJudge(); err != nil {
		return err
	}
	return p.machine.find(ctx, p.Judge.Agent)
}

// vendor returns that of a model, or of the one that the agent asks where nobody chose one.
func (p *preparation) vendor(model, id, url string) string {
	return judge.Vendor(cmp.Or(model, p.defaultModel(id, url)), id)
}

// defaultModel returns the model that an agent asks where none is named; empty if only it knows.
func (p *preparation) defaultModel(id, url string) string {
	chosen, err := p.machine.Registry.Get(id)
	if err != nil {
		return ""
	}
	if chooser, ok := chosen.(agent.ModelChooser); ok {
		return chooser.ChosenModel(agent.Config{Environ: p.machine.Host.Environ, ModelURL: url})
	}
	return chosen.Info().DefaultModel
}

// checkJudge refuses a judge that is of the vendor of some arms and not of others: it would judge
// its own work beside that of strangers.
func (p *preparation) checkJudge() error {
	vendor := p.vendor(p.Judge.Model, p.Judge.Agent, p.Judge.ModelURL)
	if vendor == "" || p.Judge.SameFamily {
		return nil
	}
	var kin, others []string
	for i := range p.Arms {
		if arm := &p.Arms[i]; p.vendor(arm.Model, arm.Agent, arm.ModelURL) == vendor {
			kin = append(kin, arm.Name)
		} else {
			others = append(others, arm.Name)
		}
	}
	if len(kin) == 0 || len(others) == 0 {
		return nil
	}
	return fmt.Errorf("the judge %s is of the family %s, and so is arm %s, but not arm %s: choose another with "+
		"--judge-agent and --judge-model, or allow it with --same-family", p.Judge.Name(), vendor,
		strings.Join(kin, ", "), strings.Join(others, ", "))
}

// checkNetworks makes sure that agents can have the required networks.
func (p *preparation) checkNetworks(ctx context.Context) error {
	_, err := p.machine.decideNetworks(ctx, &p.Setup)
	return err
}

// checkAbilities makes sure that the agent of an arm can do what the arm asks of it, before a grid
// of cells finds out.
func (p *preparation) checkAbilities(arm *experiment.Arm) error {
	chosen, err := p.machine.Registry.Get(arm.Agent)
	if err != nil {
		return err
	}
	info := chosen.Info()
	if err := p.bring(arm, info); err != nil {
		return err
	}
	given, all, err := p.checkProfile(arm)
	if err != nil {
		return err
	}
	if all {
		p.settleProfile(arm, given, info)
	}
	servers, err := armServers(arm, p.machine.getenv(), "")
	if err != nil {
		return err
	}
	asked := agent.Config{
		Dir:          ".",
		Home:         ".",
		Environ:      p.machine.Host.Environ,
		Model:        arm.Model,
		ModelURL:     arm.ModelURL,
		Auth:         arm.Auth,
		MaxTurns:     arm.MaxTurns,
		Gateway:      agent.Gateway{Off: gatewayOff(&p.Setup)},
		Context:      arm.ContextFor(&p.Family.Tasks[0]),
		Settings:     arm.Settings,
		Effort:       arm.Effort,
		Temperature:  arm.Temperature,
		MCPServers:   servers,
		AllowedTools: arm.AllowedTools,
		SystemPrompt: arm.Prompt + arm.Profile,
		Prices:       p.machine.Prices,
	}
	budget := p.CellBudget.Account()
	for i := range p.Family.Tasks {
		budget.USD = cheaper(budget.USD, &p.Family.Tasks[i])
	}
	if p.DollarBudget && budget.USD == 0 && info.Capabilities.Usage != agent.Unsupported {
		budget.USD = 1 // whether there is one matters here, and not its size
	}
	asked.Account = gateway.NewAccount("this cell", budget, p.machine.Prices)
	for _, profile := range given {
		if err := p.refuseWith(chosen, arm, withProfile(asked, profile)); err != nil {
			return err
		}
	}
	if arm.Lead == "" {
		return nil
	}
	return p.checkLead(arm, asked)
}

// refuseWith returns why an agent can never do what is asked of it, with or without a lead.
func (p *preparation) refuseWith(chosen agent.Agent, arm *experiment.Arm, asked agent.Config) error {
	if arm.Lead != "" {
		asked.MCPServers = append(asked.MCPServers, agent.MCPServer{Name: harness.ServerName})
	}
	return refuse(chosen, asked)
}

// checkLead makes sure that the lead of an arm can lead.
func (p *preparation) checkLead(arm *experiment.Arm, asked agent.Config) error {
	lead, err := p.machine.Registry.Get(arm.Lead)
	if err != nil {
		return err
	}
	asked.Model, asked.MaxTurns, asked.AllowedTools, asked.SystemPrompt = arm.LeadModel, 0, nil, ""
	asked.Context, asked.Settings, asked.Effort, asked.Temperature = agent.ContextNone, "", "", nil
	asked.MCPServers = []agent.MCPServer{{Name: harness.ServerName}}
	if err := refuse(lead, asked); err != nil {
		return fmt.Errorf("lead: %w", err)
	}
	return nil
}

// refuse returns why an agent can never do what is asked of it. What is only missing on this
// machine, such as credentials, is left to the probe: a plan does not need it.
func refuse(a agent.Agent, asked agent.Config) error {
	err := agent.Check(a, asked)
	if errors.As(err, new(*agent.CapabilityError)) {
		return err
	}
	return nil
}

func (p *preparation) judged() bool {
	return slices.ContainsFunc(p.Family.Tasks, func(t task.Task) bool { return t.JudgeTemplate != "" })
}

// sealArms hashes all that makes an arm.
func (p *preparation) sealArms(context.Context) error {
	for i := range p.Arms {
		if err := p.Arms[i].Seal(p.Brings[p.Arms[i].Name]); err != nil {
			return err
		}
	}
	return nil
}

// sentencesOf counts the sentences of a task that nothing else decides.
func sentencesOf(t *task.Task) int {
	if t.Sample == nil || len(t.Sample.Checks) > 0 {
		return 0
	}
	return len(t.Sample.Statements)
}

func (p *preparation) planTasks() {
	for i := range p.Family.Tasks {
		t := &p.Family.Tasks[i]
		p.Plan.Tasks = append(p.Plan.Tasks, experiment.PlannedTask{
			ID:         t.ID,
			Visible:    t.Digest.Visible,
			Hidden:     t.Digest.Hidden,
			Cluster:    t.Settings.Cluster,
			Repository: t.Settings.Repository,
			Tags:       t.Settings.Tags,
			Scored:     t.Settings.Scored,
			Judged:     t.JudgeTemplate != "",
			Sentences:  sentencesOf(t),
			Shared:     t.Shared(),

			AgentTimeoutMs: t.Settings.Timeouts.Agent.Milliseconds(),
		})
	}
	if p.judged() {
		sum := sha256.Sum256([]byte(p.Family.JudgeProfile))
		p.Plan.Judge = experiment.PlannedJudge{
			Agent:   p.Judge.Agent,
			Model:   p.Judge.Model,
			Default: p.Judge.Default,
			Profile: hex.EncodeToString(sum[:8]),
			Votes:   p.Judge.Votes,
		}
	}
}
