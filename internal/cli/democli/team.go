package democli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit"
	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/builtin"
	"github.com/fit-eval/fit/internal/cli/console"
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
	err = con.Foldedf("A facilitator and three participants, in %s\nThe task: %sEach is a separate agent; "+
		"they talk through tools served over MCP. They run on a scripted model, without an API key or a network.\n\n",
		project, task)
	if err != nil {
		return err
	}

	tracePath := filepath.Join(dir, "trace.ndjson")
	wiring, end := wire(con, tracePath)
	cfg := fit.FacilitatorConfig{
		FacilitatorCwd: project,
		Options: fit.Options{
			DefaultAgent: string(builtin.ID),
			Base:         agent.Config{Model: demoModel, ModelURL: model.URL},
		},
	}
	for _, name := range teamMembers {
		cfg.AgentConfigs = append(cfg.AgentConfigs, fit.AgentConfig{AgentProfile: name})
	}
	meeting, err := wiring.NewFacilitator(cfg)
	if err != nil {
		return err
	}
	result, err := meeting.Run(ctx, string(task))
	if err := errors.Join(err, end()); err != nil {
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
