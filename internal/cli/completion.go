package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/benchmarkcli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/fleet"
	"github.com/fit-eval/fit/internal/query"
	"github.com/fit-eval/fit/internal/task"
)

// newCompletion is "fit completion SHELL". Unlike cobra's own, its scripts serve every name of the
// binary.
func newCompletion(con *console.Console) *cobra.Command {
	shells := map[string]func(root *cobra.Command, w io.Writer) error{
		"bash": func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"fish": func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
		"zsh":  func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) },
	}
	return &cobra.Command{
		Use:   "completion bash|fish|zsh",
		Short: "Print the completion script of a shell, for all names of this program",
		Long: `Print a script that lets a shell complete commands, flags and their values: agents, formats, the tasks of a
family, and the arms and runs of a run directory. It serves fit, fit-harness, fit-trace, fit-benchmark and the others.`,
		Example: `  fit completion bash > ~/.local/share/bash-completion/completions/fit
  fit completion zsh > "${fpath[1]}/_fit"
  fit completion fish > ~/.config/fish/completions/fit.fish`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"bash", "fish", "zsh"},
		RunE: func(command *cobra.Command, args []string) error {
			var script bytes.Buffer
			if err := shells[args[0]](command.Root(), &script); err != nil {
				return fmt.Errorf("write the completion script: %w", err)
			}
			_, err := io.WriteString(con.Stdout, forAllNames(args[0], script.String()))
			return err
		},
	}
}

// forAllNames repeats the lines by which a script ties its functions to the name fit, for the other
// names of the binary. The functions ask the program that was typed.
func forAllNames(shell, script string) string {
	names := sortedNames()
	if shell == "zsh" {
		all := "fit " + strings.Join(names, " ")
		script = strings.Replace(script, "#compdef fit\n", "#compdef "+all+"\n", 1)
		return strings.Replace(script, "compdef _fit fit\n", "compdef _fit "+all+"\n", 1)
	}
	var out strings.Builder
	for line := range strings.Lines(script) {
		out.WriteString(line)
		switch {
		case shell == "bash" && strings.HasSuffix(line, " __start_fit fit\n"):
			for _, name := range names {
				out.WriteString(strings.TrimSuffix(line, "fit\n") + name + "\n")
			}
		case shell == "fish" && strings.HasPrefix(line, "complete ") && strings.Contains(line, "-c fit "):
			for _, name := range names {
				out.WriteString(strings.Replace(line, "-c fit ", "-c "+name+" ", 1))
			}
		}
	}
	return out.String()
}

func sortedNames() []string {
	var names []string
	for name := range programNames {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// isCompletion reports whether a shell asks what could come next.
func isCompletion(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// completeValues teaches every command of a tree the values of its flags and arguments. It is done
// only when a shell asks.
func completeValues(command *cobra.Command, con *console.Console, registry *agent.Registry) {
	complete := func(flag *pflag.Flag) {
		if _, known := command.GetFlagCompletionFunc(flag.Name); known {
			return
		}
		kind, _ := pflag.UnquoteUsage(flag)
		var values cobra.CompletionFunc
		switch {
		case strings.Contains(flag.Value.Type(), "|"):
			values = cobra.FixedCompletions(strings.Split(flag.Value.Type(), "|"), cobra.ShellCompDirectiveNoFileComp)
		case kind == "agent":
			values = cobra.FixedCompletions(registry.IDs(), cobra.ShellCompDirectiveNoFileComp)
		case flag.Name == "agents":
			values = severalOf(registry.IDs())
		case listed(flag.Name) != nil:
			values = severalOf(listed(flag.Name))
		case flag.Name == "arm" && flag.Value.Type() == "stringArray":
			values = keysOfArm(registry)
		case flag.Name == "arm":
			values = ofPlan(con, armsOf)
		case flag.Name == "clear":
			values = ofPlan(con, cellsOf)
		case flag.Name == "lane":
			values = ofTrace(con, registry, lanesOf)
		case flag.Name == "tool":
			values = ofTrace(con, registry, toolsOf)
		case flag.Name == "task" && command.Flags().Lookup("family") != nil:
			values = tasksOfFamily(con)
		default:
			return
		}
		_ = command.RegisterFlagCompletionFunc(flag.Name, values) // it fails for flags that do not exist
	}
	command.Flags().VisitAll(complete)
	command.PersistentFlags().VisitAll(complete)
	_, takes, _ := strings.Cut(command.Use, " ")
	switch {
	case command.ValidArgsFunction != nil || len(command.ValidArgs) > 0:
	case takes == "AGENT":
		command.ValidArgs = registry.IDs()
	case takes == "NAME ROLE":
		command.ValidArgsFunction = second(fleet.RoleCoordinator, fleet.RoleWorker, fleet.RoleObserver)
	case strings.HasPrefix(takes, "DIR [status|"):
		actions, _, _ := strings.Cut(strings.TrimPrefix(takes, "DIR ["), "]")
		command.ValidArgsFunction = second(strings.Split(actions, "|")...)
	case strings.HasPrefix(takes, "DIR TASK/ARM/RUN"):
		command.ValidArgsFunction = afterFirst(ofPlan(con, cellsOf))
	case takes == "FILE NAME":
		command.ValidArgsFunction = afterFirst(ofTrace(con, registry, toolsOf))
	case strings.HasPrefix(takes, "A [B]"):
		command.ValidArgsFunction = armsOfDirectory(con)
	}
	for _, child := range command.Commands() {
		completeValues(child, con, registry)
	}
}

// listed are the values of a flag that takes several, separated by commas.
func listed(flag string) []string {
	switch flag {
	case "allow":
		return console.Exceptions()
	case "fail-on":
		return benchmarkcli.Claims()
	case "dims":
		return evidence.Dimensions()
	}
	return nil
}

// severalOf completes the last of several values that are separated by commas.
func severalOf(known []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndexByte(typed, ',')+1]
		var all []string
		for _, value := range known {
			all = append(all, before+value)
		}
		return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// keysOfArm completes NAME=key:value,…: the keys, and the agents after agent: at its end.
func keysOfArm(registry *agent.Registry) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		const without = cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
		before := typed[:strings.LastIndexAny(typed, "=,")+1]
		if before == "" {
			return nil, without
		}
		var all []string
		for _, key := range experiment.ArmKeys() {
			all = append(all, before+key+":")
		}
		if strings.HasPrefix(typed[len(before):], "agent:") {
			all = nil
			for _, id := range registry.IDs() {
				all = append(all, before+"agent:"+id)
			}
		}
		return all, without
	}
}

// second completes the second argument of two; the first is a file or a name. What stands after a
// space is for people.
func second(values ...string) cobra.CompletionFunc {
	for i, value := range values {
		values[i], _, _ = strings.Cut(value, " ")
	}
	return afterFirst(cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// afterFirst completes the second argument; the first is a file.
func afterFirst(values cobra.CompletionFunc) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return values(command, args, typed)
	}
}

func tasksOfFamily(con *console.Console) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		origin := command.Flag("family").Value.String()
		if origin == "" || strings.Contains(origin, "://") { // a key press fetches nothing
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		family, err := task.Load(command.Context(), con.Path(origin), task.Options{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for i := range family.Tasks {
			names = append(names, family.Tasks[i].ID)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// ofPlan completes what the plan of the directory that is the first argument has.
func ofPlan(con *console.Console, list func(*experiment.Plan) []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		plan, err := experiment.ReadPlan(con.Path(args[0]))
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return list(plan), cobra.ShellCompDirectiveNoFileComp
	}
}

func armsOf(plan *experiment.Plan) []string {
	var names []string
	for _, arm := range plan.Arms {
		names = append(names, arm.Name)
	}
	return names
}

func cellsOf(plan *experiment.Plan) []string {
	var cells []string
	for _, task := range plan.Tasks {
		for _, arm := range plan.Arms {
			for run := range plan.Runs {
				cells = append(cells, fmt.Sprintf("%s/%s/%d", task.ID, arm.Name, run))
			}
		}
	}
	return cells
}

// longestLook is how long a key press may read a trace.
const longestLook = 2 * time.Second

// ofTrace completes what the trace that is the first argument holds.
func ofTrace(con *console.Console, registry *agent.Registry, list func(*query.Overview) []string,
) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 || args[0] == "-" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(command.Context(), longestLook)
		defer cancel()
		trace, err := query.Open(con.Path(args[0]), query.Options{Dialects: registry.Dialects()})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		overview, _, err := trace.Overview(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return list(overview), cobra.ShellCompDirectiveNoFileComp
	}
}

func lanesOf(overview *query.Overview) []string {
	var names []string
	for i := range overview.Lanes {
		names = append(names, display.Name(overview.Lanes[i].Lane))
	}
	return names
}

func toolsOf(overview *query.Overview) []string {
	var names []string
	for _, tool := range overview.Tools {
		names = append(names, display.Name(tool.Tool))
	}
	return names
}

// armsOfDirectory completes DIR: with the arms of the directory, and files before the colon.
func armsOfDirectory(con *console.Console) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		dir, _, asked := strings.Cut(typed, ":")
		if !asked {
			return nil, cobra.ShellCompDirectiveDefault
		}
		plan, err := experiment.ReadPlan(con.Path(filepath.Clean(dir)))
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		arms := armsOf(plan)
		for i, name := range arms {
			arms[i] = dir + ":" + name
		}
		return arms, cobra.ShellCompDirectiveNoFileComp
	}
}
