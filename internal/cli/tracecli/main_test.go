package tracecli

import (
	"context"
	"fmt"
	"os"
	"strings"
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

// questions are the verbs of the tree that read a trace and end, each about one file: what their
// usage asks for is filled in. Only the first of several alternatives is.
func questions(path, dir string) [][]string {
	values := map[string][]string{
		"FILE": {path}, "[FILE...]": {path}, "FILE...": {path}, "FILE-A": {path}, "FILE-B": {path}, "TEST": {"name"},
		"FROM": {"0"}, "TO": {"50"}, "INDEX": {"3"}, "CALL": {"0"}, "PATTERN": {"."}, "REGEX": {"."}, "NAME": {"Bash"},
		"QUERY": {"select * from turns"}, "FORMAT": {"markdown"}, "MODE": {"run", "--output-dir", dir},
	}
	var all [][]string
	for _, verb := range New(&console.Console{}, catalog.Default().Dialects()).Commands() {
		use, _, _ := strings.Cut(verb.Use, " |")
		if !strings.Contains(use, "FILE") || verb.Name() == "follow" { // which waits for more
			continue
		}
		var args []string
		for word := range strings.FieldsSeq(use) {
			word = strings.TrimPrefix(word, "(")
			if filled := values[word]; filled != nil {
				args = append(args, filled...)
			} else {
				args = append(args, word)
			}
		}
		all = append(all, args)
	}
	return all
}
