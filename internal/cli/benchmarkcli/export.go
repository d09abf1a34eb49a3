package benchmarkcli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/patch"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/ledger"
)

type exportOptions struct {
	arm, output string
	run         int
	format      console.Choice
}

func newExport(con *console.Console) *cobra.Command {
	opts := exportOptions{format: console.Choice{Value: "swebench", Choices: []string{"swebench"}}}
	command := &cobra.Command{
		Use:   "export DIR",
		Short: "Write the agents' changes in a run directory as SWE-bench predictions",
		Long: `Write the agents' changes in a run directory for other programs. swebench is one line of JSON per task,
with instance_id, model_name_or_path (the arm) and model_patch (the agent's changes). The patch holds text files and
links; binary files are left out and named on standard error.

A file of predictions has one per task, so a run directory with several arms needs --arm, and --run chooses one of the
runs. An agent that changed nothing has an empty patch. The exit code is 3 if a run has no result yet, or none that
can be exported.`,
		Example: `  fit-benchmark export benchmark-runs --format swebench > predictions.jsonl
  fit-benchmark export benchmark-runs --arm after --run 2 --output predictions.jsonl`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return runExport(con, &opts, args[0])
		},
	}
	flags := command.Flags()
	flags.Var(&opts.format, "format", "what to write")
	flags.StringVar(&opts.arm, "arm", "", "arm to export (default: the only one)")
	flags.IntVar(&opts.run, "run", 0, "run to export, counted from 0")
	flags.StringVar(&opts.output, "output", "", "file to write instead of standard output")
	return command
}

func runExport(con *console.Console, opts *exportOptions, dir string) error {
	found, err := loadResults(con, []string{dir}, false, nil)
	if err != nil {
		return err
	}
	records, err := opts.choose(dir, ledger.Last(found.Records))
	if err != nil {
		return err
	}
	dirs, err := results.Find(con.Path(dir))
	if err != nil {
		return classify(err)
	}
	var lines []byte
	left := 0
	for i := range records {
		r := &records[i]
		patch, notes, err := storedPatch(dirs, r)
		for _, note := range notes {
			fmt.Fprintf(con.Stderr, "%s: %s\n", r.TaskID, note)
		}
		if err != nil {
			left++
			fmt.Fprintf(con.Stderr, "%s is left out: %v\n", r.TaskID, err)
			continue
		}
		line, err := json.Marshal(prediction{InstanceID: r.TaskID, Model: r.Arm, Patch: &patch})
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	if err := opts.write(con, lines); err != nil {
		return err
	}
	if left > 0 {
		return console.Exitf(console.ExitIncomplete, "%d of %d runs could not be exported", left, len(records))
	}
	return nil
}

// choose picks the records of one run of one arm, sorted by task.
func (o *exportOptions) choose(dir string, all []ledger.Record) ([]ledger.Record, error) {
	var arms []string
	var chosen []ledger.Record
	for _, r := range all {
		if !slices.Contains(arms, r.Arm) {
			arms = append(arms, r.Arm)
		}
		if (o.arm == "" || r.Arm == o.arm) && r.RunIndex == o.run {
			chosen = append(chosen, r)
		}
	}
	slices.Sort(arms)
	switch {
	case o.arm == "" && len(arms) > 1:
		return nil, console.Usagef("%s has the arms %s; choose one with --arm", dir, strings.Join(arms, ", "))
	case o.arm != "" && !slices.Contains(arms, o.arm):
		return nil, console.Usagef("%s has no arm %q; it has %s", dir, o.arm, strings.Join(arms, ", "))
	case len(chosen) == 0:
		return nil, console.Usagef("%s has no run %d; runs are counted from 0", dir, o.run)
	}
	slices.SortFunc(chosen, func(a, b ledger.Record) int { return strings.Compare(a.TaskID, b.TaskID) })
	return chosen, nil
}

func (o *exportOptions) write(con *console.Console, lines []byte) error {
	if o.output == "" {
		_, err := con.Stdout.Write(lines)
		return err
	}
	if err := os.WriteFile(con.Path(o.output), lines, 0o600); err != nil {
		return console.Exit(console.ExitUsage, fmt.Errorf("--output: %w", err))
	}
	return nil
}

// storedPatch reads what the agent of a run changed, and makes sure that it is what was recorded.
func storedPatch(dirs []string, r *ledger.Record) (text string, notes []string, err error) {
	if r.DiffPath == "" {
		if r.Verdict == ledger.Error && r.Grade == nil {
			return "", nil, fmt.Errorf("the run ended with an error: %s", r.ErrorMessage)
		}
		return "", nil, nil
	}
	only := *r
	only.Artifacts = slices.DeleteFunc(slices.Clone(r.Artifacts),
		func(a ledger.Artifact) bool { return a.Path != r.DiffPath })
	if len(only.Artifacts) == 0 {
		return "", nil, fmt.Errorf("%s is not in the record of the run", r.DiffPath)
	}
	var problems []string
	for _, dir := range dirs {
		file := filepath.Join(dir, filepath.FromSlash(r.DiffPath))
		if !isFile(file) {
			continue
		}
		if _, problems = local.CheckArtefacts(dir, []ledger.Record{only}); len(problems) > 0 {
			return "", nil, fmt.Errorf("%s", problems[0])
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return "", nil, err
		}
		text, notes = withoutNotes(string(content))
		if slices.Contains(notes, patch.CutNote) {
			return "", nil, fmt.Errorf("%s", patch.CutNote)
		}
		return text, notes, nil
	}
	return "", nil, fmt.Errorf("there is no %s", r.DiffPath)
}

// withoutNotes takes the lines out of a patch that are not for git.
func withoutNotes(patch string) (text string, notes []string) {
	var kept strings.Builder
	for line := range strings.Lines(patch) {
		if note, found := strings.CutPrefix(line, "# "); found {
			notes = append(notes, strings.TrimSpace(note))
			continue
		}
		kept.WriteString(line)
	}
	return kept.String(), notes
}
