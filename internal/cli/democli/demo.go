// Package democli is the command fit demo: the main job of the product, in seconds, offline, on
// embedded defaults.
package democli

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit"
	"github.com/fit-eval/fit/internal/agent/builtin"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/render"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/trace"
)

//go:embed all:assets
var assets embed.FS

// demoModel is the name under which the scripted model is asked; it has a list price, so that the
// demo can show what a run would cost.
const demoModel = "claude-sonnet-4-5"

// New returns the command.
func New(con *console.Console) *cobra.Command {
	opts := experimentOptions{seed: 1}
	runs := console.Count{Value: 3, Min: 1}
	solo, team, skill, discuss := false, false, false, false
	command := &cobra.Command{
		Use:   "demo",
		Short: "Run a self-contained demo in seconds, offline",
		Long: `Run a self-contained demo in seconds, offline: an agent is measured before and after a change to its
instructions, on twelve small tasks with hidden tests, and fit says whether the change made it better. The model
behind the agent is scripted and says so: no key and no network are used.`,
		Example: `  fit demo            did the change help?
  fit demo --same     A/A test: a claim is false; one seed in thirty makes one
  fit demo --view     look at it in the browser while it runs
  fit demo --solo     one agent and one task, live
  fit demo --team     a facilitator and three participants, live
  fit demo --discuss  a thread in the browser: two agents, and you
  fit demo --skill    a skill, from nothing to the answer`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			switch {
			case solo:
				return runOne(command.Context(), con)
			case team:
				return runTeam(command.Context(), con)
			case skill:
				return runSkill(command.Context(), con)
			case discuss:
				return runDiscuss(command.Context(), con, opts.view)
			}
			opts.runs = runs.Value
			return runComparison(command.Context(), con, opts)
		},
	}
	flags := command.Flags()
	flags.BoolVar(&solo, "solo", false, "run one agent on one task, live")
	flags.BoolVar(&team, "team", false, "run a facilitator and three participants, live")
	flags.BoolVar(&discuss, "discuss", false, "discuss with agents in a thread in the browser; without a terminal or "+
		"a browser, a scripted person does")
	flags.BoolVar(&skill, "skill", false, "make a skill with test cases, and measure whether it helps and when it is "+
		"opened")
	flags.BoolVar(&opts.same, "same", false, "A/A test: both arms are identical")
	flags.BoolVar(&opts.view, "view", false, "open the results in the browser, live during the run")
	flags.Var(&runs, "runs", "repetitions of each task per arm")
	flags.Uint64Var(&opts.seed, "seed", opts.seed, "seed of the scripted model's random choices")
	return command
}

// runOne gives one agent one task and shows what happens.
func runOne(ctx context.Context, con *console.Console) error {
	dir, err := privateDir()
	if err != nil {
		return err
	}
	repo := filepath.Join(dir, "greeting")
	if err := unpack("assets/greeting", repo); err != nil {
		return err
	}
	model, err := serve("assets/script.json")
	if err != nil {
		return err
	}
	defer model.Close()
	task, err := assets.ReadFile("assets/task.md")
	if err != nil {
		return err
	}
	err = con.Foldedf("A repository with a bug:  %s\nThe task:                 %s\nThe agent:                "+
		"built-in, on a scripted model: no API key, no network\n\n", repo, task)
	if err != nil {
		return err
	}

	tracePath := filepath.Join(dir, "trace.ndjson")
	wiring, end := wire(con, tracePath)
	result, err := wiring.Run(ctx, fit.RunConfig{
		Task:     string(task),
		Cwd:      repo,
		Agent:    string(builtin.ID),
		Model:    demoModel,
		ModelURL: model.URL,
		MaxTurns: 20,
	})
	if err := errors.Join(err, end()); err != nil {
		return err
	}
	fmt.Fprintf(con.Stdout, "\nThe trace of it:          %s\nRead it again:            fit-harness output --format "+
		"text < %s\n", tracePath, tracePath)
	if !result.Success {
		return console.Exitf(console.ExitNegative, "the demo's agent did not solve its task: %s", result.Reason)
	}
	return nil
}

// wire returns the wiring of a live demonstration, whose trace goes to a file and to the screen,
// and a function that closes both.
func wire(con *console.Console, tracePath string) (fit.Wiring, func() error) {
	text := render.New(render.Config{
		Out:      con.Stdout,
		Colour:   con.Colour(),
		Dialects: builtin.New().Dialects(),
		Prices:   con.Prices(),
	})
	end := text.Close
	return fit.Wiring{
		Environ:   con.Environ,
		Prices:    con.Prices(),
		Warnings:  con.Stderr,
		Isolation: sandbox.IsolationNone,
		OpenTrace: func(redactor *redact.Redactor) (*trace.Writer, error) {
			writer, err := trace.Open(tracePath, trace.Config{Redactor: redactor, OnLine: text.Line})
			if err == nil {
				end = func() error { return errors.Join(writer.Close(), text.Close()) }
			}
			return writer, err
		},
	}, func() error { return end() }
}

// serve starts the scripted model on the loopback interface.
func serve(name string) (*scripted.Server, error) {
	content, err := assets.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return serveScript(content)
}

func serveScript(content []byte) (*scripted.Server, error) {
	script, err := scripted.Parse(content)
	if err != nil {
		return nil, fmt.Errorf("the demo's script: %w", err)
	}
	return scripted.Listen("127.0.0.1:0",
		scripted.NewServer(map[string]*scripted.Script{"": script}, scripted.Options{}))
}

// unpack copies embedded files to a directory.
func unpack(from, to string) error {
	source, err := fs.Sub(assets, from)
	if err != nil {
		return err
	}
	return os.CopyFS(to, source)
}
