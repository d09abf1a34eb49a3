package cli

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/cli/console"
)

// verbsOf are all commands of the tree that do something, by their path without the name of the
// program.
func verbsOf(t *testing.T) map[string]*cobra.Command {
	t.Helper()
	all := map[string]*cobra.Command{}
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		if !command.HasSubCommands() {
			_, path, _ := strings.Cut(command.CommandPath(), " ")
			all[path] = command
		}
		for _, child := range command.Commands() {
			visit(child)
		}
	}
	visit(newRoot(&console.Console{}, catalog.Default()))
	return all
}

// ownDefaults are flags whose default is a command's own, with the reason.
var ownDefaults = map[string]string{
	"attempts harness callback":    "attempts to post, not to run",
	"effect benchmark plan":        "without one there is nothing to plan",
	"format benchmark export":      "what is exported, not how it is printed",
	"format benchmark report":      "programs have always read it",
	"format benchmark run":         "depends on whether a person is looking",
	"format fleet run":             "that of benchmark run",
	"format harness output":        "programs have always read it",
	"format trace export":          "a format of traces; one must be chosen",
	"isolation harness resume":     "that of the session",
	"limit trace search":           "hits to show, not tasks to run",
	"listen bridge serve":          "people and runs must find it again",
	"listen fleet serve":           "workers must find it again",
	"max-bytes selfedit":           "of content that is written, not of a page",
	"max-turns harness discuss":    "bounds a round: harness.Mode.DefaultTurns",
	"max-turns harness facilitate": "bounds a round: harness.Mode.DefaultTurns",
	"max-turns harness judge":      "bounds a round: harness.Mode.DefaultTurns",
	"max-turns harness supervise":  "bounds a round: harness.Mode.DefaultTurns",
	"output benchmark run":         "a directory that is resumed; elsewhere one more file is wanted",
	"output fleet run":             "that of benchmark run",
	"runs demo":                    "a demonstration is short",
	"regrade-sample fleet run":     "its workers are the coordinator's own process",
	"runs fleet simulate":          "those of the plan",
	"slots fleet run":              "workers that share one machine",
	"timeout agents try":           "a try is short",
	"timeout harness discuss":      "a session could wait forever: harness.DefaultTimeout",
	"timeout harness facilitate":   "a session could wait forever: harness.DefaultTimeout",
	"timeout harness judge":        "a session could wait forever: harness.DefaultTimeout",
	"timeout harness supervise":    "a session could wait forever: harness.DefaultTimeout",
	"workers fleet simulate":       "a fleet that one wants to know about, not one to start here",
}

// One name has one default, on every command that has it. The flags of stats are numbers in
// formulas.
func TestAFlagHasOneDefault(t *testing.T) {
	type use struct{ path, value string }
	unset := map[string]bool{"0": true, "[]": true, "false": true}
	uses, own := map[string][]use{}, maps.Clone(ownDefaults)
	for path, command := range verbsOf(t) {
		command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			key := flag.Name + " " + path
			switch {
			case own[key] != "":
				delete(own, key)
			case !strings.HasPrefix(path, "stats "):
				value := flag.DefValue
				if unset[value] {
					value = ""
				}
				uses[flag.Name] = append(uses[flag.Name], use{path, value})
			}
		})
	}
	for name, all := range uses {
		slices.SortFunc(all, func(a, b use) int { return cmp.Compare(a.path, b.path) })
		for _, one := range all[1:] {
			if one.value != all[0].value {
				t.Errorf("--%s is %q by default on %q and %q on %q", name, all[0].value, all[0].path, one.value, one.path)
			}
		}
	}
	for key := range own {
		t.Errorf("%s: there is no such flag", key)
	}
}

// runs are the commands that start agents, with what each must let its user choose.
var runs = []string{
	"benchmark run", "fleet run", "versus run", "harness run", "harness supervise", "harness facilitate",
	"harness discuss", "harness judge",
}

// The same idea has the same flag on every command that runs agents.
func TestCommandsThatRunAgentsHaveTheSameFlags(t *testing.T) {
	verbs := verbsOf(t)
	want := map[string][]string{
		"": {
			"model", "model-url", "auth", "context", "isolation", "network", "gateway", "record", "replay",
			"replay-mode", "deny-server-tools", "faults", "max-turns", "max-trace-mb", "max-cost-usd", "timeout",
			"output", "work-tracker",
		},
		"harness": {"agent", "task-text"},
		"benchmark run, fleet run, versus run": {
			"arm", "arms", "runs", "seed", "concurrency", "fleet", "max-tokens", "max-time", "arm-max-cost-usd",
			"arm-max-tokens", "arm-max-time", "cell-max-cost-usd", "cell-max-tokens", "cell-max-time", "drain",
			"attempts", "break-after", "retry-errors", "keep-raw", "no-probe", "dry-run", "allow", "require-delivery",
			"pull", "format",
		},
	}
	for _, path := range runs {
		for of, names := range want {
			if !strings.HasPrefix(path, of) && !strings.Contains(of, path) {
				continue
			}
			for _, name := range names {
				if verbs[path].LocalFlags().Lookup(name) == nil {
					t.Errorf("%s has no flag --%s", path, name)
				}
			}
		}
	}
}

// Every command that prints a choice of formats offers JSON as --format json.
func TestJSONIsAskedForInOneWay(t *testing.T) {
	for path, command := range verbsOf(t) {
		flags := command.LocalFlags()
		if format := flags.Lookup("format"); format != nil && path != "benchmark export" &&
			!slices.Contains(strings.Split(format.Value.Type(), "|"), "json") {
			t.Errorf("%s: --format takes %s", path, format.Value.Type())
		}
		for _, name := range []string{"json", "robot"} {
			if flag := flags.Lookup(name); flag != nil && (!flag.Hidden || flags.Lookup("format") == nil) {
				t.Errorf("%s shows --%s, or lacks --format", path, name)
			}
		}
	}
}

// Older spellings work and are not shown.
func TestOlderSpellingsOfFlags(t *testing.T) {
	verbs := verbsOf(t)
	for path, spellings := range map[string]string{
		"harness run": "task-file task-text task-event task-amend agent-model model max-turns output work-tracker " +
			"advisor-model advisor-max-uses cwd agent-profile allowed-tools mcp-server isolation max-cost-usd",
		"harness supervise": "lead-profile lead-model agent-profile allowed-tools supervisor-cwd agent-cwd agent-model " +
			"supervisor-allowed-tools mcp-server max-turns session-timeout session-max-tokens session-max-cost-usd",
		"harness facilitate": "lead-profile lead-model facilitator-cwd agent-profiles agent-cwd max-turns agent-model",
		"harness discuss":    "lead-profile lead-model agent-profiles agent-cwd discussion-id resume-context max-lead-turns",
		"benchmark run": "family task skills-from output runs agent-model lead-model judge-model agent-profile " +
			"judge-profile work-tracker max-turns concurrency shard allowed-tools sandbox isolation",
		"benchmark grade":  "family task run-dir input output sandbox",
		"benchmark report": "input k format detail",
		"benchmark merge":  "input output",
		"benchmark init":   "language runner",
		"versus run": "agents runs robot timeout parallel budget-usd judge panel seed keep-worktrees isolation sandbox " +
			"auth out output dry-run judge-budget-usd judge-parallel model agent-model",
		"versus judge":   "dims panel judge-budget-usd",
		"versus compare": "alpha robot",
		"versus report":  "robot format",
		"versus list":    "tasks since robot",
		"versus audit":   "strict robot",
		"versus doctor":  "robot",
	} {
		t.Run(path, func(t *testing.T) {
			for name := range strings.FieldsSeq(spellings) {
				if verbs[path].LocalFlags().Lookup(name) == nil {
					t.Errorf("%s does not know --%s", path, name)
				}
			}
		})
	}
	for path, command := range verbs {
		command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if !flag.Hidden && strings.Contains(flag.Usage, "older name") {
				t.Errorf("%s shows the older name --%s", path, flag.Name)
			}
		})
	}
}

// A run directory is an argument, on every command that reads one.
func TestARunDirectoryIsAnArgument(t *testing.T) {
	for path, command := range verbsOf(t) {
		command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if flag.Hidden || flag.Name == "output" {
				return // output is made
			}
			if strings.HasPrefix(flag.Usage, "run director") || flag.Usage == "directory of the attempt" {
				t.Errorf("%s takes a run directory by --%s", path, flag.Name)
			}
		})
		if strings.Contains(command.Use, "DIRECTORY") {
			t.Errorf("%s says DIRECTORY; the others say DIR", path)
		}
	}
	for _, path := range []string{"benchmark report", "benchmark merge", "benchmark grade"} {
		if use := verbsOf(t)[path].Use; !strings.Contains(use, "DIR") {
			t.Errorf("%s takes no directory: %s", path, use)
		}
	}
}
