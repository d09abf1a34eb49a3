package selfeditcli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/selfeditcli"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/trace"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"fit-selfedit": func() { os.Exit(call(os.Args[1:])) }})
}

// call runs the command as the binary does: the error on standard error, its code as the exit code.
func call(args []string) int {
	con := console.System("test-version")
	command := selfeditcli.New(con)
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(args)
	err := command.ExecuteContext(context.Background())
	if err != nil {
		fmt.Fprintf(con.Stderr, "fit-selfedit: %v\n", err)
	}
	return console.Code(err)
}

func TestScripts(t *testing.T) {
	testenv.NeedTool(t, "git")
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			env.Setenv("GORACE", "atexit_sleep_ms=0") // commands end at once
			for _, who := range []string{"AUTHOR", "COMMITTER"} {
				env.Setenv("GIT_"+who+"_NAME", "a")
				env.Setenv("GIT_"+who+"_EMAIL", "a@example.com")
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"records": records,
		},
	})
}

// exits runs a shell command line and expects its exit code: exits 2 'fit-selfedit x < new'.
func exits(script *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) != 2 {
		script.Fatalf("usage: exits code 'command line'")
	}
	if err := script.Exec("sh", "-c", args[1]+"\ntest $? = "+args[0]); err != nil {
		script.Fatalf("%s did not exit with %s", args[1], args[0])
	}
}

// records expects a number of lines in a log, all of them envelopes that the trace reader accepts:
// records 1 .git/fit/selfedit.ndjson.
func records(script *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) != 2 {
		script.Fatalf("usage: records count file")
	}
	file, err := os.Open(script.MkAbs(args[1]))
	script.Check(err)
	defer file.Close()
	count, err := countEnvelopes(file)
	script.Check(err)
	if fmt.Sprint(count) != args[0] {
		script.Fatalf("%s has %d lines, want %s", args[1], count, args[0])
	}
}

func countEnvelopes(log io.Reader) (int, error) {
	reader := trace.NewReader(log)
	for count := 0; ; count++ {
		line, err := reader.Next()
		if err == io.EOF {
			return count, nil
		}
		if err != nil || line.Problem != nil {
			return count, fmt.Errorf("line %d: %w", count, errors.Join(err, line.Problem))
		}
		if line.Bare || line.Source != "selfedit" || line.Seq != int64(count) || line.Ts == 0 ||
			!strings.HasPrefix(string(line.Event), `{"type":"selfedit",`) {
			return count, fmt.Errorf("line %d is %s", count, line.Raw)
		}
	}
}
