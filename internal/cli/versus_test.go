package cli_test

import (
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fit-eval/fit/versus/versustest"
)

// cmdRunDir writes a run directory in which three agents have worked: rundir DIRECTORY [tasks].
// With "tasks" there are fourteen tasks, and the one that gives up makes mistakes instead.
func cmdRunDir(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 1 {
		ts.Fatalf("usage: rundir directory [tasks|benchmark]")
	}
	d := three()
	if len(args) > 1 {
		switch args[1] {
		case "tasks":
			d.Tasks, d.Arms[1].Does, d.Arms[2].Does = 14, versustest.Solves, versustest.Mistakes
		case "benchmark":
			d.Workspace = ""
		default:
			ts.Fatalf("rundir: unknown kind %q", args[1])
		}
	}
	ts.Check(d.Write(ts.MkAbs(args[0])))
}

func three() versustest.Directory {
	return versustest.Three([3]string{"claude-code", "codex", "pi-agent"}, "claude-sonnet-4-5")
}
