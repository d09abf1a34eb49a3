package tracecli

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/cli/console"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"fit-trace": func() { os.Exit(run(console.System("test"), os.Args[1:])) },
		"fit":       func() { os.Exit(run(console.System("test"), os.Args[2:])) }, // fit trace …
	})
}

// run is what the root of all commands does: an error is printed once and gives the exit code.
func run(con *console.Console, args []string) int {
	command := New(con, catalog.Default().Dialects())
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(args)
	command.SetOut(con.Stdout)
	command.SetErr(con.Stderr)
	mistakes(command)
	err := command.ExecuteContext(context.Background())
	if err != nil && err.Error() != "" {
		fmt.Fprintln(con.Stderr, "fit-trace: "+err.Error())
	}
	return console.Code(err)
}

func mistakes(command *cobra.Command) {
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return console.Exit(console.ExitUsage, err) })
	if check := command.Args; check != nil {
		command.Args = func(command *cobra.Command, args []string) error {
			if err := check(command, args); err != nil {
				return console.Exit(console.ExitUsage, err)
			}
			return nil
		}
	}
	for _, child := range command.Commands() {
		mistakes(child)
	}
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: quickExit,
	})
}

// quickExit keeps commands that were built with the race detector from sleeping for a second when
// they end.
func quickExit(env *testscript.Env) error {
	env.Setenv("GORACE", "atexit_sleep_ms=0")
	return nil
}
