// Package cli is where the commands are put together: the tree of commands, the names the binary
// can be called by, and the way from an error to an exit code. The commands themselves live in the
// packages below it, one for each tree.
package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"regexp/syntax"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/near"
	"github.com/fit-eval/fit/redact"
)

// programNames are the names people know the commands by; the binary called by such a name is that
// command. subq is all of them, with versus as its eval.
var programNames = map[string]string{
	"fit-harness":   "harness",
	"fit-eval":      "harness",
	"fit-trace":     "trace",
	"fit-benchmark": "benchmark",
	"fit-selfedit":  "selfedit",
	"subq":          "",
}

// Main runs the command the process was started as and returns its exit code.
func Main() int {
	endings := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // a closed terminal ends a run like Ctrl-C does, except under nohup
		endings = append(endings, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), endings...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	defer exitOnTerminate()()
	con := console.System(version())
	// What cannot be removed now is tried again by the next start.
	warn(con, agent.RemoveLoginCopies(con.Environ))
	defer func() { warn(con, agent.KeepLoginCopies(con.Environ)) }()
	return Run(ctx, os.Args, con)
}

// warn prints what is no reason to do nothing, but must not stay unknown: a login lies on the disk.
func warn(con *console.Console, err error) {
	if err != nil {
		fmt.Fprintln(con.Stderr, "warning:", err)
	}
}

// terminationLimit is how long a command may take to end after SIGTERM.
const terminationLimit = 900 * time.Millisecond

// exitOnTerminate makes sure that SIGTERM ends the process within a second, whatever it does: a
// command that computes does not look at its context. What it has started is ended by its
// supervisors. The function that is returned gives that up.
func exitOnTerminate() (stop func()) {
	terminated, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(terminated, syscall.SIGTERM)
	go func() {
		select {
		case <-done:
			return
		case <-terminated:
		}
		select {
		case <-done:
		case <-time.After(terminationLimit):
			_, _ = os.Stderr.WriteString("stopped by SIGTERM before the work was saved\n")
			os.Exit(console.ExitInterrupted)
		}
	}()
	return func() {
		signal.Stop(terminated)
		close(done)
	}
}

// Run runs one command line, args[0] being the name of the program, and returns its exit code. An
// error is printed here and nowhere else.
func Run(ctx context.Context, args []string, con *console.Console) int {
	name := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	if _, known := programNames[name]; !known {
		name = "fit"
	}
	con = con.Shared() // cells, builds and calls report side by side
	registry, mistake := catalog.Load(catalog.Files(con.Dir, con.Environ)...)
	root := calledAs(name, newRoot(con, registry))
	root.PersistentPreRunE = func(command *cobra.Command, _ []string) error {
		if mistake != nil && runsAgents(command) {
			return console.Exit(console.ExitUsage, mistake)
		}
		return nil
	}
	misspelt := refuseHelpOnNothing(root)
	if isCompletion(args[1:]) {
		completeValues(root, con, registry)
	}
	root.SetArgs(args[1:])
	root.SetIn(con.Stdin)
	root.SetOut(con.Stdout)
	root.SetErr(con.Stderr)
	command, err := root, con.LoadPrices()
	if err == nil {
		command, err = root.ExecuteContextC(ctx)
	}
	if err == nil {
		err = *misspelt
	}
	if errors.Is(err, errVersion) {
		_, err = fmt.Fprintf(con.Stdout, "fit %s\n", con.Version)
	}
	if err == nil {
		return console.ExitGood
	}
	code := exitCode(ctx, err)
	if err.Error() != "" {
		message := withoutCalls(document.Explain(err), err)
		if tree := programNames[name]; tree != "" { // its commands are named as the one that was typed
			message = strings.ReplaceAll(message, "fit "+tree+" ", name+" ")
		}
		if code == console.ExitInterrupted && errors.Is(err, context.Canceled) {
			message = "interrupted"
		}
		if code == console.ExitUsage && command != nil && !isSafeguard(command) &&
			!strings.Contains(message, "--help") && !isAboutFile(err) {
			message += fmt.Sprintf(" (see: %s --help)", command.CommandPath())
		}
		// reading the logins too would slow every mistake down
		redactor := redact.New(redact.Config{Environ: con.Environ, Extra: registry.Credentials(con.Environ)})
		fmt.Fprintf(con.Stderr, "%s: %s\n", name, display.Text(redactor.String(message)))
	}
	return code
}

// runsAgents reports whether a command may use the agents of agents.yaml, so that a mistake in the
// file stops it. Those that only read what is there are not in its way.
func runsAgents(command *cobra.Command) bool {
	for ; command != nil; command = command.Parent() {
		name := command.Name()
		if tree, called := programNames[name]; called {
			name = tree
		}
		if slices.Contains([]string{"harness", "benchmark", "versus", "eval", "agents", "doctor"}, name) {
			return true
		}
	}
	return false
}

// calledAs is the tree that a name of the binary stands for. Its help and its errors have that
// name.
func calledAs(name string, root *cobra.Command) *cobra.Command {
	root.Use = name
	if name == "subq" {
		for _, command := range root.Commands() {
			isEval := func(alias string) bool { return alias == "eval" } // of harness, everywhere else
			command.Aliases = slices.DeleteFunc(command.Aliases, isEval)
			if command.Name() == "versus" {
				command.Use, command.Aliases = "eval", append(command.Aliases, "versus")
			}
		}
		return root
	}
	for _, command := range root.Commands() {
		if command.Name() == programNames[name] {
			_, takes, _ := strings.Cut(command.Use, " ")
			root.RemoveCommand(command)
			console.Outside(command, root.Commands())
			command.Use = strings.TrimSpace(name + " " + takes)
			command.CompletionOptions = root.CompletionOptions
			command.SilenceErrors, command.SilenceUsage = true, true
			command.SetHelpCommand(newHelp(command))
			return command
		}
	}
	return root
}

// withoutCalls takes the names of system calls out of a message: a file that is not there needs no
// "lstat" before it.
func withoutCalls(message string, err error) string {
	for _, wrapped := range everything(err) {
		switch problem := wrapped.(type) {
		case *fs.PathError:
			message = strings.ReplaceAll(message, problem.Error(), problem.Path+": "+problem.Err.Error())
			message = strings.ReplaceAll(message, problem.Path+": "+problem.Path+": ", problem.Path+": ")
		case *net.OpError:
			wrong, unknown := new(net.AddrError), new(net.DNSError)
			switch {
			case errors.As(problem, &wrong):
				message = strings.ReplaceAll(message, problem.Error(), "must be HOST:PORT, e.g. 127.0.0.1:8080")
			case errors.As(problem, &unknown):
				message = strings.ReplaceAll(message, problem.Error(), "there is no host "+unknown.Name)
			case problem.Op == "listen":
				message = strings.ReplaceAll(message, problem.Error(), rootCause(problem.Err))
			}
		case *json.SyntaxError:
			message = strings.ReplaceAll(message, problem.Error(), document.SyntaxWords(problem))
		case *syntax.Error: // of a pattern
			message = strings.ReplaceAll(message, problem.Error(), problem.Code.String()+": "+problem.Expr)
		}
	}
	return message
}

// rootCause is the innermost error, in words: what a system call answered, without its name.
func rootCause(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err.Error()
}

// everything lists an error and all that it wraps.
func everything(err error) []error {
	all := []error{err}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			all = append(all, everything(inner)...)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			all = append(all, everything(inner)...)
		}
	}
	return all
}

// isAboutFile reports whether a mistake is in a file and not in the call.
func isAboutFile(err error) bool {
	var problem *document.Error
	return errors.As(err, &problem)
}

// exitCode is the exit code of an error. A command that was interrupted fails in many ways: it says
// that it was called wrongly, or that something is broken. Verdicts and budgets still count.
func exitCode(ctx context.Context, err error) int {
	code := console.Code(err)
	if ctx.Err() != nil && (code == console.ExitUsage || code == console.ExitIncomplete) {
		return console.ExitInterrupted
	}
	return code
}

// isSafeguard reports whether exit code 2 of a command is a refusal and not a mistake in the call.
func isSafeguard(command *cobra.Command) bool {
	return command.Name() == "selfedit" || command.Name() == "fit-selfedit"
}

func newRoot(con *console.Console, registry *agent.Registry) *cobra.Command {
	root := &cobra.Command{
		Use:   "fit",
		Short: "Prove whether a change to an agent made it better",
		Long: `fit runs agents on tasks, keeps a redacted trace of everything they did, and answers whether a change
to an agent made it better.

New here? "fit demo" shows the whole path in seconds, offline; "fit doctor" shows what this machine has and lacks.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) > 0 {
				return console.UnknownCommand(command, args[0])
			}
			return command.Help()
		},
	}
	root.AddCommand(commands(con, registry)...)
	root.AddCommand(newVersion(con), newCompletion(con), newMan(con), newInstallNames(con))
	// Each command is also a program of its own, and programs know their version. Cobra's own flag
	// is not used: with a template of what it prints, the linker could drop no exported method, and
	// the program would be 5 MB larger.
	show := func(string) error { return errVersion }
	for _, command := range append(root.Commands(), root) {
		command.Flags().BoolFuncP("version", "v", "version for "+command.Name(), show)
		command.Version = "" // with one, cobra reads the flag as its own
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(newHelp(root))
	makeMistakesUsageErrors(root)
	console.AcceptOlderNames(root)
	fitTerminal(root, min(con.Columns(), widestHelp))
	return root
}

// errVersion ends a command that was asked for its version only.
var errVersion = errors.New("asked for the version")

// newVersion is "fit version", which prints what --version prints.
func newVersion(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show the version, revision and date of this program",
		Example: "  fit version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(con.Stdout, "fit %s\n", con.Version)
			return err
		},
	}
}

// makeMistakesUsageErrors gives wrong flags and wrong arguments the exit code of a usage error, in
// every command of the tree.
func makeMistakesUsageErrors(command *cobra.Command) {
	command.SetFlagErrorFunc(func(asked *cobra.Command, err error) error {
		return console.Exit(console.ExitUsage, plain(asked, err))
	})
	if check := command.Args; check != nil {
		command.Args = func(command *cobra.Command, args []string) error {
			if err := check(command, args); err != nil {
				return console.Exit(console.ExitUsage, describeArgs(command, args, err))
			}
			return nil
		}
	}
	if command.HasSubCommands() && command.RunE == nil && command.Run == nil {
		command.RunE = func(command *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return console.NeedsCommand(command)
			case args[0] == "help":
				return newHelp(command).RunE(command, args[1:])
			}
			return console.UnknownCommand(command, args[0])
		}
		command.Args = cobra.ArbitraryArgs
	}
	for _, child := range command.Commands() {
		makeMistakesUsageErrors(child)
	}
}

// describeArgs says what a command takes where cobra only counts.
func describeArgs(command *cobra.Command, args []string, err error) error {
	var ours *console.Error
	if errors.As(err, &ours) {
		return err
	}
	_, takes, _ := strings.Cut(command.Use, " ")
	name := console.Below(command)
	switch {
	case takes == "" && len(args) == 0:
		return err
	case takes == "" && command.Flag("task-text") != nil:
		return fmt.Errorf("%s takes no arguments; name the task with --task-text %q", name, args[0])
	case takes == "" && command.Flag("family") != nil:
		return fmt.Errorf("%s takes no arguments; name the family with --family %q", name, args[0])
	case takes == "":
		return fmt.Errorf("%s takes no arguments, but got %q", name, args[0])
	case takes == "A [B]" && len(args) == 3:
		return fmt.Errorf("%s takes A [B]: two arms of a run directory are %s:%s %[2]s:%[4]s", name, args[0],
			args[1], args[2])
	case takes == "A [B]":
		return fmt.Errorf("%s takes A [B]: run directories, or DIR:ARM for one arm", name)
	case len(args) == 0:
		return fmt.Errorf("%s takes %s, but got nothing", name, takes)
	default:
		return fmt.Errorf("%s takes %s, but got %s", name, takes, strings.Join(quoted(args), " "))
	}
}

func quoted(args []string) []string {
	var all []string
	for _, arg := range args {
		all = append(all, strconv.Quote(arg))
	}
	return all
}

// otherWords are what other programs call flags of ours.
var otherWords = map[string][]string{
	"addr":      {"listen"},
	"budget":    {"max-cost-usd"},
	"dir":       {"output", "cwd"},
	"epochs":    {"runs"},
	"f":         {"family"},
	"filter":    {"task", "match"},
	"host":      {"listen", "addr"},
	"j":         {"concurrency"},
	"jobs":      {"concurrency"},
	"json":      {"format"},
	"listen":    {"addr"},
	"limit":     {"lines"},
	"n":         {"runs", "lines"},
	"o":         {"output"},
	"out":       {"output"},
	"parallel":  {"concurrency"},
	"port":      {"listen", "addr"},
	"prompt":    {"task-text"},
	"repeat":    {"runs"},
	"skill":     {"skills-from"},
	"task":      {"task-text", "task-file"},
	"threshold": {"min-pass-rate"},
	"trials":    {"runs"},
	"workers":   {"concurrency"},
}

// plain says in words what the standard library says in the names of its functions, and which flag
// was probably meant.
func plain(command *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			if !flag.Hidden {
				names = append(names, "--"+flag.Name)
			}
		})
		if command.HasSubCommands() {
			return console.NeedsCommand(command)
		}
		said := unknownFlag(unknown, names)
		if !strings.Contains(said, ";") {
			said += elsewhere(command, unknown.GetSpecifiedName())
		}
		return fmt.Errorf("unknown flag: %s", said)
	}
	var number *strconv.NumError
	about, _, found := strings.Cut(err.Error(), ": strconv.")
	if !found || !errors.As(err, &number) {
		return err
	}
	switch {
	case errors.Is(number, strconv.ErrRange):
		return fmt.Errorf("%s: the number is too large", about)
	case number.Func == "ParseFloat":
		return fmt.Errorf("%s: must be a number, e.g. 0.05", about)
	case number.Func == "ParseBool":
		return fmt.Errorf("%s: must be true or false", about)
	default:
		return fmt.Errorf("%s: must be a whole number", about)
	}
}

// unknownFlag names a flag that a command does not have, and what was probably meant.
func unknownFlag(unknown *pflag.NotExistError, names []string) string {
	typed := unknown.GetSpecifiedName()
	shown := "--" + typed
	if unknown.GetSpecifiedShortnames() != "" {
		shown = "-" + typed
	}
	for _, word := range otherWords[typed] {
		if slices.Contains(names, "--"+word) {
			return fmt.Sprintf("%s; did you mean --%s?", shown, word)
		}
	}
	switch {
	case strings.Trim(typed, "0123456789") == "":
		return shown + "; arguments that begin with a dash follow --, e.g. -- -1"
	case typed == "output", typed == "out", typed == "o":
		return shown + "; the answer goes to standard output: add > FILE"
	case slices.Contains(names, "--arm") && slices.Contains(experiment.ArmKeys(), typed):
		return fmt.Sprintf("%s; it is a key of an arm: --arm NAME=agent:AGENT,%s:VALUE", shown, typed)
	case len(typed) == 1:
		return shown // it is near to everything
	}
	return shown + near.Question("--"+typed, names)
}

// elsewhere names the commands beside one that have a flag which it lacks, or else what it takes.
func elsewhere(command *cobra.Command, flag string) string {
	var having []string
	for _, other := range command.Parent().Commands() {
		if found := other.Flags().Lookup(flag); found != nil && !found.Hidden && other.IsAvailableCommand() {
			having = append(having, other.CommandPath())
		}
	}
	_, takes, _ := strings.Cut(command.Use, " ")
	switch {
	case len(having) == 1:
		return fmt.Sprintf("; %s has it", having[0])
	case len(having) > 1 && len(having) <= 4:
		return fmt.Sprintf("; %s have it", strings.Join(having, ", "))
	case takes != "" && !strings.HasPrefix(takes, "-"):
		return "; it takes " + takes
	}
	return ""
}

// version is what the build recorded about itself: version, revision and date.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	number := strings.Trim(cmp.Or(info.Main.Version, "devel"), "()")
	revision := cmp.Or(settings["vcs.revision"], "unknown")
	if settings["vcs.modified"] == "true" {
		revision += " with changes"
	}
	return fmt.Sprintf("%s, revision %s, %s", number, revision, cmp.Or(settings["vcs.time"], "date unknown"))
}
