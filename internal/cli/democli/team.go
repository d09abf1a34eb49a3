package democli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/agent/builtin"
	"github.com/fit-eval/fit/harness"
	"github.com/fit-eval/fit/harness/mcpserve"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/render"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/sandbox"
	"github.com/fit-eval/fit/trace"
)

// teamMembers are the profiles of the demo's participants.
var teamMembers = []string{"security", "testing", "documentation"}

// runTeam lets a facilitator and three participants decide something, and shows it live.
func runTeam(ctx context.Context, con *console.Console) error {
	dir, err := privateDir()
	if err != nil {
		return err
	}
	project := filepath.Join(dir, "greet")
	if err := unpack("assets/team/project", project); err != nil {
		return err
	}
	for _, name := range teamMembers {
		if err := unpackFile("assets/team/"+name+".md",
			filepath.Join(project, ".claude", "agents", name+".md")); err != nil {
			return err
		}
	}
	model, err := serve("assets/team/script.json")
	if err != nil {
		return err
	}
	defer model.Close()
	task, err := assets.ReadFile("assets/team/task.md")
	if err != nil {
		return err
	}
	fmt.Fprintf(con.Stdout, "A facilitator and three participants, in %s\nThe task: %sEach is an agent of its own; "+
		"they talk through tools served over MCP. Their model is scripted, so this needs no key and no network.\n\n",
		project, task)

	tracePath := filepath.Join(dir, "trace.ndjson")
	result, err := holdMeeting(ctx, con, project, string(task), model.URL, tracePath)
	if err != nil {
		return err
	}
	fmt.Fprintf(con.Stdout, "\nVerdict: %s. %s\n\nEvery message is in the trace:  %s\nRead it again:                 "+
		"fit-harness output --format text < %s\nHow teams work:                docs/agent-collaboration.md\n",
		result.Verdict, result.Summary, tracePath, tracePath)
	if !result.Success {
		return console.Exitf(console.ExitNegative, "the demo's team failed: %s", result.Reason)
	}
	return nil
}

func holdMeeting(ctx context.Context, con *console.Console, project, task, modelURL, tracePath string) (harness.Result,
	error,
) {
	worker := builtin.New()
	prices := con.Prices()
	text := render.New(render.Config{
		Out:      con.Stdout,
		Colour:   con.Colour(),
		Dialects: worker.Dialects(),
		Prices:   prices,
	})
	keys := mcpserve.NewKeyring(1 + len(teamMembers))
	redactor := redact.New(redact.Config{Environ: con.Environ, Extra: keys.Secrets()})
	writer, err := trace.Open(tracePath, trace.Config{Redactor: redactor, OnLine: text.Line})
	if err != nil {
		return harness.Result{}, err
	}
	cfg := harness.FacilitatorConfig{
		FacilitatorCwd: project,
		Redactor:       redactor,
		NewAgent:       func(harness.AgentConfig) (agent.Agent, error) { return worker, nil },
		Options: harness.Options{
			Trace: writer, Connect: keys.Connect(mcpserve.Config{}),
			Base: agent.Config{
				Environ:  con.Environ,
				Model:    demoModel,
				ModelURL: modelURL,
				Spawner:  sandbox.NewSpawner(),
				Prices:   prices,
			},
		},
	}
	for _, name := range teamMembers {
		cfg.AgentConfigs = append(cfg.AgentConfigs, harness.AgentConfig{AgentProfile: name})
	}
	meeting, err := harness.NewFacilitator(cfg)
	if err != nil {
		return harness.Result{}, errors.Join(err, writer.Close())
	}
	result, err := meeting.Run(ctx, task)
	return result, errors.Join(err, writer.Close(), text.Close())
}

// unpackFile copies one embedded file.
func unpackFile(from, to string) error {
	content, err := assets.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}
