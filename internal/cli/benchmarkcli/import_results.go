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
)

func newImportResults(con *console.Console, registry *agent.Registry) *cobra.Command {
	var from experimentcli.From
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
			return importResults(con, registry, args[0], args[1], from.Options())
		},
	}
	from.Register(command.Flags())
	return command
}

func importResults(con *console.Console, registry *agent.Registry, source, dir string,
	opts *foreign.Options,
) error {
	if entries, err := os.ReadDir(con.Path(dir)); err != nil && !errors.Is(err, os.ErrNotExist) || len(entries) > 0 {
		return console.Usagef("%s is not empty: choose a new directory", dir)
	}
	runs, err := experimentcli.Import(con.Path(source), con.Path(dir), opts,
		experimentcli.Redactor(con, registry), experimentcli.SigningKey(con))
	switch {
	case errors.Is(err, foreign.ErrUnknown), errors.Is(err, os.ErrNotExist):
		return console.Exit(console.ExitUsage, err)
	case err != nil:
		return classify(err)
	case runs.Len() == 0:
		return console.Exitf(console.ExitIncomplete, "%s: no results yet", source)
	}
	fmt.Fprintf(con.Stdout, "%s of %s in %s\n", report.Count(runs.Len(), "run"), runs.Record(0).Imported.Format, dir)
	return nil
}
