package democli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/builtin"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/viewcli"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/redact"
)

// The skills of the two arms, and what the second says beyond the first: the change that the demo
// measures.
const (
	skillBefore = "before"
	skillAfter  = "after"
	skillChange = "Before you say that you are done, try the script on an example and compare what it prints with " +
		"what the task asks for."
)

// experimentOptions say how much the demo measures.
type experimentOptions struct {
	dir  string
	runs int
	seed uint64
	// same gives both arms the same skill: nothing changed, and nothing must be claimed.
	same bool
	// view shows the experiment in the browser until the user ends it.
	view bool
}

// runExperiment measures both arms on the embedded family and returns the run directory.
func runExperiment(ctx context.Context, con *console.Console, opts experimentOptions,
	progress func(experiment.Progress),
) (string, error) {
	machine := &local.Machine{
		Registry: agent.NewRegistry(builtin.New()),
		Host:     agent.Host{Environ: con.Environ, Spawner: sandbox.NewSpawner()},
		Prices:   con.Prices(),
		Redactor: redact.New(redact.Config{Environ: con.Environ}),
	}
	prepared, stop, err := prepare(ctx, machine, opts)
	if err != nil {
		return "", err
	}
	defer stop()
	out := filepath.Join(opts.dir, "results")
	directory, err := experiment.OpenDirectory(out, prepared.Plan, machine.Redactor)
	if err != nil {
		return "", err
	}
	executor, err := local.New(ctx, local.Config{
		Prepared:  prepared,
		Machine:   machine,
		Artefacts: directory,
		Work:      filepath.Join(opts.dir, "work"),
	})
	if err != nil {
		return "", errors.Join(err, directory.Close())
	}
	outcome, err := experiment.Run(ctx, directory,
		experiment.Config{
			Executor:    executor,
			Concurrency: runtime.NumCPU(),
			Progress:    progress,
			Steered:     true,
		})
	if err = errors.Join(err, executor.Close(), directory.Close()); err != nil {
		return "", err
	}
	if outcome.Status != experiment.Complete {
		return "", console.Exitf(console.ExitIncomplete, "the demo's experiment is not complete: %s", outcome.Reason)
	}
	return out, nil
}

// prepare unpacks the family, starts the scripted model and makes the plan. The returned function
// stops the model.
func prepare(ctx context.Context, machine *local.Machine, opts experimentOptions) (*experiment.Prepared, func(),
	error,
) {
	familyDir := filepath.Join(opts.dir, "family")
	if err := unpack("assets/family", familyDir); err != nil {
		return nil, nil, err
	}
	family, err := task.Load(ctx, familyDir, task.Options{})
	if err != nil {
		return nil, nil, err
	}
	skillsDir := filepath.Join(opts.dir, "skills")
	if err := unpack("assets/skills", skillsDir); err != nil {
		return nil, nil, err
	}
	model, err := serve("assets/family-model.json")
	if err != nil {
		return nil, nil, err
	}
	stop := func() { _ = model.Close() } // it has nothing left to say
	address := model.URL + "/c/{cell}/seed/{seed}"
	before := experiment.Arm{
		Name:     "before",
		Agent:    string(builtin.ID),
		Model:    demoModel,
		ModelURL: address,
		MaxTurns: 20,
		Skills:   filepath.Join(skillsDir, skillBefore),
	}
	after := before
	after.Name = "after"
	if !opts.same {
		after.Skills = filepath.Join(skillsDir, skillAfter)
	}
	prepared, err := local.Prepare(ctx, experiment.Setup{
		Family: family,
		Arms:   []experiment.Arm{before, after},
		Runs:   opts.runs,
		Seed:   opts.seed,
	}, machine)
	if err != nil {
		stop()
		return nil, nil, console.Exit(console.ExitUsage, err)
	}
	return prepared, stop, nil
}

// compareArms reads the ledger and asks whether the change helped.
func compareArms(out string) (*report.Comparison, error) {
	contents, err := ledger.ReadFile(filepath.Join(out, experiment.LedgerFile))
	if err != nil {
		return nil, err
	}
	built, err := report.Build(report.Input{Records: contents.Records, K: []int{1}})
	if err != nil {
		return nil, err
	}
	groups := map[string]*report.Group{}
	for i := range built.Groups {
		groups[built.Groups[i].Provenance.Arm] = &built.Groups[i]
	}
	return report.Compare(groups["before"], groups["after"], report.CompareConfig{})
}

// change describes what the second arm has that the first has not.
func (o experimentOptions) change() string {
	if o.same {
		return "the same skill"
	}
	return fmt.Sprintf("the skill plus one sentence: %q", skillChange)
}

// runComparison is the demo proper: did one more sentence in a skill make the agent better?
func runComparison(ctx context.Context, con *console.Console, opts experimentOptions) error {
	var err error
	if opts.dir, err = privateDir(); err != nil {
		return err
	}
	err = con.Foldedf(`Did a change make the agent better?

tasks    twelve small shell scripts with one bug each, graded by hidden tests
agent    built-in agent on a scripted model with seeded randomness: no API key, no network (dollars are its tokens at list price)
before   a skill for repairing shell scripts
after    %s

`, opts.change())
	if err != nil {
		return err
	}
	if opts.view {
		return showWhile(ctx, con, opts.dir, func(ctx context.Context) error { return measure(ctx, con, opts) })
	}
	return measure(ctx, con, opts)
}

// showWhile serves the pages of a directory while something is done in it, and afterwards until the
// context ends.
func showWhile(ctx context.Context, con *console.Console, dir string, do func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return viewcli.Serve(ctx, con, builtin.New().Dialects(), dir)
	})
	group.Go(func() error { return do(ctx) })
	return group.Wait()
}

// measure runs the experiment and says whether the change helped.
func measure(ctx context.Context, con *console.Console, opts experimentOptions) error {
	out, err := runExperiment(ctx, con, opts, newTicker(con).show)
	if err != nil {
		return err
	}
	comparison, err := compareArms(out)
	if err != nil {
		return err
	}
	if err := con.Folded(comparison.Text); err != nil {
		return err
	}
	page := filepath.Join(opts.dir, "report.md")
	file, err := os.Create(page)
	if err != nil {
		return err
	}
	if err := errors.Join(comparison.Markdown(file), file.Close()); err != nil {
		return err
	}
	last := lastRecord(out)
	fmt.Fprintf(con.Stdout, `
agents   isolation %s, network %s (docs/security.md)
report   %s
ledger   %s
one run  fit-trace timeline %s
again    fit demo --seed 2     another roll of the dice
         fit demo --solo       one agent at work, live
`, last.Isolation, last.Network, page, filepath.Join(out, experiment.LedgerFile),
		filepath.Join(out, last.AgentTracePath))
	return nil
}

// lastRecord is one run of the experiment, to look at.
func lastRecord(out string) ledger.Record {
	contents, err := ledger.ReadFile(filepath.Join(out, experiment.LedgerFile))
	if err != nil || len(contents.Records) == 0 {
		return ledger.Record{}
	}
	return contents.Records[len(contents.Records)-1]
}

// privateDir makes the directory of a demo.
func privateDir() (string, error) {
	dir, err := os.MkdirTemp("", "fit-demo-")
	if err != nil {
		return "", fmt.Errorf("make a directory for the demo: %w", err)
	}
	return dir, nil
}
