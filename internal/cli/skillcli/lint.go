package skillcli

import (
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/sarif"
	"github.com/fit-eval/fit/internal/skill"
	"github.com/fit-eval/fit/internal/task"
)

const formatSARIF = "sarif"

// linted is what lint found in one skill.
type linted struct {
	Dir      string          `json:"dir"` // as the user named it
	Findings []skill.Finding `json:"findings"`
}

func newLint(con *console.Console) *cobra.Command {
	var format console.Format
	strict := false
	command := &cobra.Command{
		Use:   "lint DIR…",
		Short: "Check skills against the specification, and for what costs people days",
		Long: `Check skills against the specification of Agent Skills: front matter, name, description, bounds. Also found: a
description that does not say when to use the skill, a body that is too long, files that the body refers to and that
are missing, scripts without a run bit, absolute paths, credentials, and test cases that cannot be read. The exit code
is 1 if there is an error.`,
		Example: `  fit skill lint my-skill
  fit skill lint .claude/skills/* --format sarif > skills.sarif`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return runLint(con, args, format.Value, strict) },
	}
	format.Register(command.Flags(), "output format", console.FormatText, console.FormatJSON, formatSARIF)
	command.Flags().BoolVar(&strict, "strict", false, "exit 1 on warnings too")
	return command
}

func runLint(con *console.Console, dirs []string, format string, strict bool) error {
	var all []linted
	errors, warnings := 0, 0
	for _, dir := range dirs {
		one, err := lintDir(con, dir)
		if err != nil {
			return err
		}
		for _, finding := range one.Findings {
			if finding.Level == skill.LevelError {
				errors++
			} else {
				warnings++
			}
		}
		all = append(all, one)
	}
	if err := printLinted(con, all, format); err != nil {
		return err
	}
	fmt.Fprintf(con.Stderr, "%s, %s, %s\n", report.Count(len(all), "skill"), report.Count(errors, "error"),
		report.Count(warnings, "warning"))
	if errors > 0 || strict && warnings > 0 {
		return console.Exit(console.ExitNegative, nil)
	}
	return nil
}

func lintDir(con *console.Console, dir string) (linted, error) {
	at, err := filepath.Abs(con.Path(dir))
	if err != nil {
		return linted{}, err
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		return linted{}, console.Usagef("%s is not the directory of a skill: %w", dir, err)
	}
	defer root.Close()
	found := skill.Lint(root, filepath.Base(at), task.CheckCase(root))
	return linted{Dir: filepath.ToSlash(dir), Findings: found}, nil
}

func printLinted(con *console.Console, all []linted, format string) error {
	switch format {
	case console.FormatJSON:
		for i := range all {
			if all[i].Findings == nil {
				all[i].Findings = []skill.Finding{}
			}
		}
		return jsonenc.WriteIndented(con.Stdout, all)
	case formatSARIF:
		run := sarif.NewRun("fit skill lint", con.Version)
		for _, one := range all {
			for _, finding := range one.Findings {
				run.Add(skill.Rules[finding.Rule], sarif.Result{
					RuleID:    finding.Rule,
					Level:     finding.Level,
					Message:   sarif.Message{Text: finding.Message},
					Locations: []sarif.Location{locationOf(one.Dir, finding)},
				})
			}
		}
		return jsonenc.WriteIndented(con.Stdout, run.Log())
	}
	for _, one := range all {
		for _, f := range one.Findings {
			place := path.Join(one.Dir, f.File)
			if f.Line > 0 {
				place = fmt.Sprintf("%s:%d", place, f.Line)
			}
			text := display.Line(fmt.Sprintf("%s: %s: %s (%s)", place, f.Level, f.Message, f.Rule))
			if err := con.Foldedf("%s\n", text); err != nil {
				return err
			}
		}
	}
	return nil
}

func locationOf(dir string, f skill.Finding) sarif.Location {
	location := sarif.Location{}
	location.Physical.Artifact.URI = path.Join(dir, f.File)
	if f.Line > 0 {
		location.Physical.Region = &sarif.Region{StartLine: f.Line}
	}
	return location
}
