// Package tracecli is the command fit-trace: questions to traces. Every verb is a thin shell over
// package query: an Options struct, a run function that asks the question, and a choice of text,
// JSON or NDJSON for the answer.
package tracecli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/query"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/session"
)

// app is what all verbs share.
type app struct {
	con      *console.Console
	dialects session.Dialects
	flags    globals
	opened   []*query.Trace
	redactor *redact.Redactor
}

// globals are the flags of every verb.
type globals struct {
	format     console.Choice
	lanes      []string
	signatures bool
	noPager    bool
	noRedact   bool
	jsonHelp   bool
}

// New returns the command tree fit trace.
func New(con *console.Console, dialects session.Dialects) *cobra.Command {
	dialects = append(slices.Clone(dialects), auditDialect())
	a := &app{
		con: con, dialects: dialects,
		flags: globals{format: console.Choice{
			Value:   formatText,
			Choices: []string{formatText, formatJSON, formatNDJSON},
		}},
	}
	root := &cobra.Command{
		Use:   "trace",
		Short: "Read, search, compare and check traces",
		Long: `Read, search, compare and check traces: NDJSON of one agent or of a whole team, plain or packed with
gzip or zstd, from a file or, as "-", from standard input. Files of any size are read in constant memory on all cores.

An entry is one item of a trace: a system event, an assistant event, the text of a user event, or one tool result.
Entries are numbered from 0 over all lanes; fields such as turnIndex refer to entries. A turn of the model is one reply
with everything it calls, however many entries it was streamed in. Patterns are regular expressions in RE2 syntax.`,
		Example: `  fit trace overview run.ndjson                     what happened, at a glance
  fit trace timeline run.ndjson                     entry by entry
  fit trace search run.ndjson 'permission denied'   every hit, in context
  fit trace errors --file 'runs/**/*.ndjson'        failed calls of many runs
  fit trace sql run.ndjson 'select name, count(*) from tool_calls group by 1'`,
		Args: cobra.ArbitraryArgs,
		// so that a verb spelled as a flag gets an answer that helps
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE:               a.noVerb,
	}
	flags := root.PersistentFlags()
	flags.Var(&a.flags.format, "format", "how to print: text, json or ndjson")
	flags.StringArrayVar(&a.flags.lanes, "lane", nil, "only this lane, the `NAME` of a participant (repeatable)")
	flags.BoolVar(&a.flags.signatures, "signatures", false, "keep the signatures of thinking blocks")
	flags.Bool("no-index", false, "has no effect: there is no index")
	_ = flags.MarkHidden("no-index") // it exists
	flags.BoolVar(&a.flags.noPager, "no-pager", false, "print straight to the terminal")
	flags.BoolVar(&a.flags.noRedact, "no-redact", false, "show secrets unredacted")
	flags.BoolVar(&a.flags.jsonHelp, "json", false, "with --help: print the help as JSON")
	_ = root.RegisterFlagCompletionFunc("format",
		cobra.FixedCompletions([]string{formatText, formatJSON, formatNDJSON}, cobra.ShellCompDirectiveNoFileComp))
	for _, group := range []func() []*cobra.Command{
		a.readVerbs, a.toolVerbs, a.searchVerbs, a.statsVerbs, a.fileVerbs,
		a.teamVerbs, a.githubVerbs,
	} {
		root.AddCommand(group()...)
	}
	for _, verb := range root.Commands() {
		root.Flags().Bool(verb.Name(), false, "")
		_ = root.Flags().MarkHidden(verb.Name())
	}
	a.helpAsJSON(root)
	return root
}

// noVerb answers a call without a verb, with an unknown one, or with one that is spelled as a flag.
func (a *app) noVerb(command *cobra.Command, args []string) error {
	for _, verb := range command.Commands() {
		if set, _ := command.Flags().GetBool(verb.Name()); set {
			return console.Usagef("%s is a command, not a flag: %s", verb.Name(), verb.UseLine())
		}
	}
	switch {
	case len(args) == 0:
		return console.NeedsCommand(command)
	case len(args) == 2 && args[0] == "help":
		if verb, _, err := command.Find(args[1:]); err == nil && verb != command {
			return verb.Help()
		}
		args = args[1:]
	}
	return console.UnknownCommand(command, args[0])
}

// helpAsJSON lets programs read the help.
func (a *app) helpAsJSON(root *cobra.Command) {
	plain := root.HelpFunc()
	root.SetHelpFunc(func(command *cobra.Command, args []string) {
		if !a.flags.jsonHelp {
			plain(command, args)
			return
		}
		help := map[string]any{
			"name": command.CommandPath(), "usage": command.UseLine(), "description": command.Short,
			"examples": command.Example,
		}
		var verbs []map[string]string
		for _, verb := range command.Commands() {
			if !verb.Hidden {
				verbs = append(verbs, map[string]string{
					"name": verb.Name(), "usage": verb.UseLine(),
					"description": verb.Short,
				})
			}
		}
		if verbs != nil {
			help["commands"] = verbs
		}
		raw, err := json.MarshalIndent(help, "", "  ")
		if err == nil {
			fmt.Fprintln(a.con.Stdout, string(raw))
		}
	})
}

// options are how traces are opened.
func (a *app) options() query.Options {
	return query.Options{
		Dialects: a.dialects,
		Prices:   a.con.Prices(),
		Lanes:    a.flags.lanes,
		Stdin:    a.con.Stdin,
		Redactor: a.secrets(),
	}
}

// secrets is what takes secrets out of everything that is printed. Traces that fit wrote are
// redacted already; what agents leave on disk themselves is not.
func (a *app) secrets() *redact.Redactor {
	if a.redactor == nil {
		a.redactor = redact.New(redact.Config{Environ: a.con.Environ, Disable: a.flags.noRedact})
	}
	return a.redactor
}

// open opens one trace. It is named in answers as it was named on the command line.
func (a *app) open(path string) (*query.Trace, error) {
	if path == "" {
		return nil, console.Usagef("no file was named")
	}
	real := path
	if path != "-" {
		real = a.con.Path(path)
	} else if slices.ContainsFunc(a.opened, func(t *query.Trace) bool { return t.Path == "-" }) {
		return nil, console.Usagef("standard input (-) can be read only once")
	}
	trace, err := query.Open(real, a.options())
	if err != nil {
		return nil, classify(err)
	}
	trace.Label = path
	a.opened = append(a.opened, trace)
	return trace, nil
}

// classify gives an error of the engine its exit code: a file that is not there is a mistake in the
// call.
func classify(err error) error {
	var path *fs.PathError
	switch {
	case errors.Is(err, query.ErrNothing), errors.Is(err, query.ErrNothingToSplit):
		return console.Exit(console.ExitUsage, err)
	case errors.As(err, &path) && errors.Is(err, fs.ErrNotExist):
		return console.Usagef("%s: no such file", path.Path)
	case errors.As(err, &path) && errors.Is(err, query.ErrDirectory):
		return console.Usagef("%s is %w%s", path.Path, query.ErrDirectory, aTraceOf(path.Path))
	case errors.As(err, &path) && errors.Is(err, os.ErrPermission):
		return console.Exitf(console.ExitIncomplete, "%s: permission denied", path.Path)
	}
	return err
}

// aTraceOf names a trace of a run directory, or one below another directory, for a message.
func aTraceOf(dir string) string {
	found, err := filepath.Glob(filepath.Join(dir, "runs", "*", "*", "*", "*", "*.ndjson*"))
	if err == nil && len(found) > 0 {
		return fmt.Sprintf("; %d of its runs have one, such as %s", len(found), found[0])
	}
	for below := dir; strings.Count(below, "*") < 4; below = filepath.Join(below, "*") {
		if found, err = filepath.Glob(filepath.Join(below, "*.ndjson*")); err == nil && len(found) > 0 {
			return fmt.Sprintf("; name a file, such as %s", found[0])
		}
	}
	return "; name a file"
}

// fileFirst puts the file before what is asked about it, also where they came in the order of grep.
func (a *app) fileFirst(args []string) {
	last := len(args) - 1
	if !a.exists(args[0]) && a.exists(args[last]) {
		asked := args[0]
		copy(args, args[1:])
		args[last] = asked
	}
}

// reportEmpty complains about inputs that hold no trace. If there is nothing else, nothing is
// printed.
func (a *app) reportEmpty(out *output, sink io.Writer) error {
	var empty []string
	for _, t := range a.opened {
		if t.Nothing() {
			empty = append(empty, t.Name())
		}
	}
	if len(empty) == 0 || out.mayLack && len(empty) < len(a.opened) {
		return nil
	}
	if len(empty) == len(a.opened) {
		out.w.Reset(sink)
	}
	about := ""
	if dir, file := filepath.Split(a.con.Path(empty[0])); file == experiment.PlanFile || file == experiment.LedgerFile {
		about = fmt.Sprintf("; %s belongs to a run directory: fit benchmark report %s", file, filepath.Clean(dir))
	}
	return fmt.Errorf("%s: %w%s", display.Name(strings.Join(slices.Compact(empty), ", ")), query.ErrNothing, about)
}

// note reports on standard error what could not be read, and lanes that are not there.
func (a *app) note(t *query.Trace) {
	for _, lane := range t.MissingLanes() {
		fmt.Fprintf(a.con.Stderr, "%s has no lane %q; overview lists its lanes\n", t.Name(), lane)
	}
	p := t.Problems()
	if p.NoEnd {
		fmt.Fprintf(a.con.Stderr, "%s: %s\n", t.Name(), query.CutOff)
	}
	if p.Skipped == 0 {
		return
	}
	noun := "lines"
	if p.Skipped == 1 {
		noun = "line"
	}
	var reasons []string
	for _, first := range p.First[:min(3, len(p.First))] {
		reasons = append(reasons, first.String())
	}
	more := ""
	if p.Skipped > len(reasons) {
		more = "; …"
	}
	fmt.Fprintf(a.con.Stderr, "%s: %d %s skipped (%s%s)\n", t.Name(), p.Skipped, noun, strings.Join(reasons, "; "),
		more)
}

// verb makes a command that asks one question.
func (a *app) verb(use, short, example string, args cobra.PositionalArgs,
	run func(ctx context.Context, out *output, args []string) error,
) *cobra.Command {
	return &cobra.Command{
		Use:     use,
		Short:   short,
		Example: example,
		Args:    args,
		RunE: func(command *cobra.Command, args []string) error {
			return a.print(command.Context(), func(out *output) error { return run(command.Context(), out, args) })
		},
	}
}
