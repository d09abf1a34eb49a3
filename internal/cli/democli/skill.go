package democli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/builtin"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/skillcli"
)

// demoSkill is the skill that the demo makes.
const demoSkill = "notes"

// runSkill goes the path of somebody who writes a skill: it runs the commands that it shows.
func runSkill(ctx context.Context, con *console.Console) error {
	dir, err := privateDir()
	if err != nil {
		return err
	}
	err = con.Foldedf("From nothing to an answer: does a skill help, and is it opened when it should be?\n"+
		"The built-in agent runs on a scripted model, in %s: no API key, no network.\n", dir)
	if err != nil {
		return err
	}
	inside := *con
	inside.Dir = dir
	// the results are signed with a key of their own, so that nothing is left in the user's home
	inside.Environ = append(slices.Clone(con.Environ), "XDG_CONFIG_HOME="+filepath.Join(dir, ".config"))
	if err := show(ctx, &inside, "init", demoSkill); err != nil {
		return err
	}
	script, err := os.ReadFile(filepath.Join(dir, demoSkill, "evals", "model.json"))
	if err != nil {
		return err
	}
	model, err := serveScript(script)
	if err != nil {
		return err
	}
	defer model.Close()
	measured := []string{
		demoSkill, "--runs", "2", "--agent", string(builtin.ID), "--model", demoModel,
		"--model-url", model.URL + "/c/{cell}",
	}
	for _, args := range [][]string{
		{"lint", demoSkill},
		append([]string{"test"}, measured...),
		append([]string{"trigger"}, measured...),
	} {
		if err := show(ctx, &inside, args...); err != nil {
			return err
		}
	}
	fmt.Fprintf(con.Stdout, "\nlook closer  fit view %s\nyour skill   fit skill test DIR --agent AGENT; "+
		"docs/skills.md\n", dir)
	return nil
}

// show prints a command of fit skill and runs it.
func show(ctx context.Context, con *console.Console, args ...string) error {
	fmt.Fprintf(con.Stdout, "\n$ fit skill %s\n", strings.Join(args, " "))
	command := skillcli.New(con, agent.NewRegistry(builtin.New()))
	command.SetArgs(args)
	command.SilenceErrors, command.SilenceUsage = true, true
	return command.ExecuteContext(ctx)
}
