package democli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/agent/builtin"
	"github.com/fit-eval/fit/experiment"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/price"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/sandbox"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/task"
)

// skill is the change that the demo measures: one sentence more in the agent's instructions.
const skill = "Before you say that you are done, try the script on an example and compare what it prints with what the task asks for."

// experimentOptions say how much the demo measures.
type experimentOptions struct {
	dir  string
	runs int
	seed uint64
	// same gives both arms the same instructions: nothing changed, and nothing must be claimed.
	same bool
}

// runExperiment measures both arms on the embedded family and returns the run directory.
func runExperiment(ctx context.Context, con *console.Console, opts experimentOptions, progress func(experiment.Progress)) (string, error) {
	prepared, stop, err := prepare(ctx, con, opts)
	if err != nil {
		return "", err
	}
	defer stop()
	out := filepath.Join(opts.dir, "results")
	redactor := redact.New(redact.Config{Environ: con.Environ})
	directory, err := experiment.OpenDirectory(out, prepared.Plan, redactor)
	if err != nil {
		return "", err
	}
	local, err := prepared.Local(out, redactor, session.ListPrices(price.Default()))
	if err != nil {
		return "", errors.Join(err, directory.Close())
	}
	outcome, err := experiment.Run(ctx, directory, experiment.Config{Executor: local, Concurrency: runtime.NumCPU(), Progress: progress})
	if err = errors.Join(err, local.Close(), directory.Close()); err != nil {
		return "", err
	}
	if outcome.Status != experiment.Complete {
		return "", console.Exitf(console.ExitIncomplete, "the demo's experiment is not complete: %s", outcome.Reason)
	}
	return out, nil
}

// prepare unpacks the family, starts the scripted model and makes the plan. The returned function stops the model.
func prepare(ctx context.Context, con *console.Console, opts experimentOptions) (*experiment.Prepared, func(), error) {
	familyDir := filepath.Join(opts.dir, "family")
	if err := unpack("assets/family", familyDir); err != nil {
		return nil, nil, err
	}
	family, err := task.Load(ctx, familyDir, task.Options{})
	if err != nil {
		return nil, nil, err
	}
	model, err := serve("assets/family-model.json")
	if err != nil {
		return nil, nil, err
	}
	stop := func() { _ = model.Close() } // it has nothing left to say
	address := model.URL + "/c/{cell}/seed/{seed}"
	before := experiment.Arm{Name: "before", Agent: string(builtin.ID), Model: demoModel, ModelURL: address, MaxTurns: 20}
	after := before
	after.Name, after.Prompt = "after", skill
	if opts.same {
		after.Prompt = before.Prompt
	}
	prepared, err := experiment.Prepare(ctx, experiment.Setup{
		Family: family, Arms: []experiment.Arm{before, after}, Runs: opts.runs, Seed: opts.seed, Registry: agent.NewRegistry(builtin.New()),
		Host: agent.Host{Environ: con.Environ, Spawner: sandbox.NewSpawner()},
	})
	if err != nil {
		stop()
		return nil, nil, err
	}
	return prepared, stop, nil
}

// privateDir makes the directory of a demo.
func privateDir() (string, error) {
	dir, err := os.MkdirTemp("", "fit-demo-")
	if err != nil {
		return "", fmt.Errorf("make a directory for the demo: %w", err)
	}
	return dir, nil
}
