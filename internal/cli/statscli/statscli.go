// Package statscli is `fit stats`: the statistics of package stats for people at a terminal. Every
// subcommand prints text, or with --format json one object; numbers that make no sense get one line
// and exit code 2.
package statscli

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/stats"
)

// statsOptions are the flags that all subcommands share.
type statsOptions struct {
	Format console.Format
	Level  float64
}

// New builds the `stats` command tree. The dialects are those of the traces in run directories.
func New(con *console.Console, dialects session.Dialects) *cobra.Command {
	options := &statsOptions{}
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Run the statistics of fit reports on your own numbers",
		Long: `The statistics behind every fit report, for numbers you already have.

Each command names the method it used. Nothing here reads or changes an experiment.`,
		Example: `  fit stats proportion --k 13 --n 37
  fit stats paired results.csv
  fit stats power --effect 0.10 --runs 3`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArguments,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return console.Usagef("%s: %w (see %s --help)", cmd.Name(), err, cmd.CommandPath())
	})
	options.Format.Register(cmd.PersistentFlags(), "output format")
	cmd.PersistentFlags().Float64Var(&options.Level, "level", stats.DefaultLevel, "confidence level")
	cmd.AddCommand(
		newProportion(con, options), newDifference(con, options), newPassK(con, options),
		newMcNemar(con, options), newPaired(con, options, dialects),
		newPower(con, options), newJudge(con, options), newAgree(con, options), newAdjust(con, options),
	)
	for _, sub := range cmd.Commands() {
		// Not a persistent hook, which would hide one of the root command.
		run := sub.RunE
		sub.RunE = func(cmd *cobra.Command, args []string) error {
			if !(options.Level > 0 && options.Level < 1) {
				return console.Usagef("%s: level must be above 0 and below 1, not %v", cmd.Name(),
					options.Level)
			}
			return run(cmd, args)
		}
	}
	return cmd
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		return console.UnknownCommand(cmd, args[0])
	}
	return console.Usagef("%s takes no arguments but got %q; numbers go into flags, see %s --help", cmd.Name(), args[0],
		cmd.CommandPath())
}

func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return console.Usagef("%s takes one file (or - for standard input), got %d; see %s --help", cmd.Name(), len(args),
		cmd.CommandPath())
}

func oneFileOrSides(cmd *cobra.Command, args []string) error {
	if len(args) == 2 {
		return nil
	}
	return oneFile(cmd, args)
}

// needFlags names all missing flags at once.
func needFlags(cmd *cobra.Command, names ...string) error {
	var missing []string
	for _, name := range names {
		if !cmd.Flags().Changed(name) {
			missing = append(missing, "--"+name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return console.Usagef("%s needs %s; see %s --help", cmd.Name(), strings.Join(missing, ", "), cmd.CommandPath())
}

// refused turns an error of package stats, which is always about the numbers given, into a usage
// error.
func refused(cmd *cobra.Command, err error) error { return console.Usagef("%s: %w", cmd.Name(), err) }

// emit writes the result in the format asked for.
func emit(con *console.Console, options *statsOptions, result any, text func(w io.Writer)) error {
	if options.Format.JSON() {
		if err := jsonenc.WriteIndented(con.Stdout, result); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
		return nil
	}
	var buffer strings.Builder
	text(&buffer)
	print := func(w io.Writer) error {
		_, err := io.WriteString(w, display.Text(buffer.String()))
		return err
	}
	if err := con.Folded(print); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

func percent(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }

func levelName(level float64) string {
	return fmt.Sprintf("%g%% CI", math.Round(level*1e6)/1e4)
}

func warn(w io.Writer, warnings []string) {
	for _, warning := range warnings {
		fmt.Fprintf(w, "note: %s\n", warning)
	}
}
