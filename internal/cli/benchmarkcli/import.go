package benchmarkcli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/task"
)

// The formats that import reads.
const (
	importPromptfoo = "promptfoo"
	importInspect   = "inspect"
)

type importOptions struct {
	from   console.Choice
	scorer console.Choice
	fields map[string]string
}

func newImport(con *console.Console) *cobra.Command {
	opts := importOptions{
		from:   console.Choice{Choices: []string{importPromptfoo, importInspect}},
		scorer: console.Choice{Choices: inspectScorers},
	}
	command := &cobra.Command{
		Use:   "import FILE DIR",
		Short: "Convert a promptfoo configuration or a file of Inspect samples into a dataset",
		Long: `Make a dataset from a promptfoo configuration (promptfooconfig.yaml) or from a file of Inspect samples
(.csv, .json, .jsonl). Files of Inspect do not say which scorer and which columns a program uses: give them with
--scorer and --field.

Features without a counterpart are not carried over; each is named on a line of its own. Models are not part of a
dataset: give them to "run" as arms.`,
		Example: `  fit-benchmark import promptfooconfig.yaml my-questions
  fit-benchmark import --from inspect --scorer match --field input=question samples.jsonl my-questions`,
		Args: cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			return runImport(command.Context(), con, &opts, args[0], args[1])
		},
	}
	command.Flags().Var(&opts.from, "from", "format of FILE (default: promptfoo for .yaml, else inspect)")
	command.Flags().Var(&opts.scorer, "scorer", "`NAME` of Inspect's scorer, which is in its program and not in the "+
		"file: "+strings.Join(inspectScorers, ", ")+" (default: choice where samples have choices, else includes)")
	command.Flags().StringToStringVar(&opts.fields, "field", nil, "column of Inspect's samples that has another name, "+
		"as `FIELD=COLUMN`: input, target, choices, id or metadata (repeatable)")
	return command
}

func runImport(ctx context.Context, con *console.Console, opts *importOptions, source, target string) error {
	dir, err := con.NewDirectory(target)
	if err != nil {
		return err
	}
	from := opts.from.Value
	if ext := strings.ToLower(filepath.Ext(source)); from == "" && (ext == ".yaml" || ext == ".yml") {
		from = importPromptfoo
	}
	made := &imported{name: strings.TrimSuffix(filepath.Base(source), filepath.Ext(source))}
	if from == importPromptfoo {
		err = made.promptfoo(con.Path(source))
	} else {
		err = made.inspect(con.Path(source), opts)
	}
	if err == nil && len(made.samples) == 0 {
		err = fmt.Errorf("%s has no samples", source)
	}
	if err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	if err := made.write(dir); err != nil {
		return err
	}
	for _, loss := range made.losses {
		fmt.Fprintf(con.Stderr, "not imported: %s\n", loss)
	}
	if _, err := task.Load(ctx, dir, task.Options{Environ: con.Environ}); err != nil {
		return console.Exitf(console.ExitNegative, "%w\n%s was written and needs editing", err, target)
	}
	fmt.Fprintf(con.Stderr, "%s is a dataset of %s\nnext: fit-benchmark lint --family %s\n", target,
		report.Count(len(made.samples), "sample"), target)
	return nil
}

// imported is a dataset that was made of another format.
type imported struct {
	name      string
	prompt    string
	reference string
	threshold *float64
	grade     []map[string]any
	samples   []map[string]any
	losses    []string
	lost      map[string]bool // by loss
}

// lose notes what was not carried over, once.
func (m *imported) lose(format string, args ...any) {
	loss := fmt.Sprintf(format, args...)
	if m.lost == nil {
		m.lost = map[string]bool{}
	}
	if !m.lost[loss] {
		m.losses, m.lost[loss] = append(m.losses, loss), true
	}
}

// write makes family.yaml and samples.jsonl. Texts are in JSON's quotes, which are YAML's too.
func (m *imported) write(dir string) error {
	var family, samples bytes.Buffer
	fmt.Fprintf(&family, "name: %s\ndataset: samples.jsonl\nprompt: %s\n", jsonenc.String(m.name),
		jsonenc.String(m.prompt))
	if m.reference != "" {
		fmt.Fprintf(&family, "reference: %s\n", jsonenc.String(m.reference))
	}
	if m.threshold != nil {
		fmt.Fprintf(&family, "threshold: %v\n", *m.threshold)
	}
	if len(m.grade) > 0 {
		fmt.Fprintln(&family, "grade:")
	}
	for _, check := range m.grade {
		text, err := jsonenc.Marshal(check)
		if err != nil {
			return err
		}
		fmt.Fprintf(&family, "  - %s\n", text)
	}
	for _, sample := range m.samples {
		if err := jsonenc.Write(&samples, sample); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "family.yaml"), family.Bytes(), 0o644),
		os.WriteFile(filepath.Join(dir, "samples.jsonl"), samples.Bytes(), 0o644))
}
