package benchmarkcli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/foreign"
	"github.com/fit-eval/fit/ledger"
)

func newImportResults(con *console.Console, registry *agent.Registry) *cobra.Command {
	var from fromFlags
	command := &cobra.Command{
		Use:   "import-results SOURCE DIR",
		Short: "Keep the results of another harness as a run directory",
		Long: `Keep the results of another harness as a run directory, signed with your key, to report, compare and view
later. Every record names the file that it was read from, with its digest, and what that file cannot promise. DIR must
not exist, or be empty.`,
		Example: `  fit-benchmark import-results logs/before.eval runs/before
  fit-benchmark import-results results.csv runs/june --columns task=id,pass=ok`,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			if isFile(filepath.Join(con.Path(args[0]), experiment.LedgerFile)) {
				return console.Usagef("%s is a run directory already; report and compare take it", args[0])
			}
			return importResults(con, registry, args[0], args[1], from.options())
		},
	}
	from.register(command.Flags())
	return command
}

func importResults(con *console.Console, registry *agent.Registry, source, dir string,
	opts *foreign.Options,
) error {
	records, err := foreign.Read(con.Path(source), *opts)
	switch {
	case errors.Is(err, foreign.ErrUnknown), errors.Is(err, os.ErrNotExist):
		return console.Exit(console.ExitUsage, err)
	case err != nil:
		return classify(err)
	case len(records) == 0:
		return console.Exitf(console.ExitIncomplete, "%s: no results yet", source)
	}
	if err := os.MkdirAll(con.Path(dir), 0o755); err != nil {
		return console.Exit(console.ExitUsage, fmt.Errorf("import-results: %w", err))
	}
	if entries, err := os.ReadDir(con.Path(dir)); err != nil || len(entries) > 0 {
		return console.Usagef("%s is not empty: choose a new directory", dir)
	}
	writer, err := ledger.Open(filepath.Join(con.Path(dir), experiment.LedgerFile), ledger.Config{
		Experiment: records[0].Experiment,
		Redactor:   experimentcli.Redactor(con, registry),
		Key:        experimentcli.SigningKey(con),
		NoSync:     true, // what is lost can be read again
	}, nil)
	if err != nil {
		return err
	}
	for i := range records {
		if err := writer.Append(&records[i]); err != nil {
			return errors.Join(err, writer.Close())
		}
	}
	if err := writer.Close(); err != nil {
		return err
	}
	fmt.Fprintf(con.Stdout, "%s of %s in %s\n", report.Count(len(records), "run"), records[0].Imported.Format, dir)
	return nil
}
