package cli_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/report/versus/versustest"
	"github.com/fit-eval/fit/ledger"
)

// cmdRunDir writes a run directory in which three agents have worked: rundir DIRECTORY [KIND].
// With "tasks" there are fourteen tasks, and the one that gives up makes mistakes instead; with
// "signed" the results are signed by the user's key. The other kinds have two arms of one agent on
// twelve tasks, the second of which brings a skill and solves: "treated"; its model changed:
// "drifted"; nobody knows whether it arrived: "unknown"; the records are those of an earlier
// version: "old".
func cmdRunDir(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 1 {
		ts.Fatalf("usage: rundir directory [tasks|benchmark|signed|treated|…]")
	}
	d := three()
	if len(args) > 1 {
		switch args[1] {
		case "tasks":
			d.Tasks, d.Arms[1].Does, d.Arms[2].Does = 14, versustest.Solves, versustest.Mistakes
		case "benchmark":
			d.Workspace = ""
		case "signed":
			key, err := ledger.CreateKey(filepath.Join(ts.Getenv("HOME"), ".config", "fit", "ledger.key"))
			ts.Check(err)
			d.Key = key
		case "treated", "drifted", "contaminated", "replayed", "unknown", "old":
			d = treated(args[1])
		case versustest.Mistakes, versustest.Pretends, versustest.Deletes, versustest.NoService, versustest.Retried,
			versustest.OutOfTurns, "again":
			d = counting(args[1])
		default:
			ts.Fatalf("rundir: unknown kind %q", args[1])
		}
	}
	ts.Check(d.Write(ts.MkAbs(args[0])))
}

// counting is an experiment of two arms, twelve tasks and two runs. The first arm does in every
// other run what is said; all other runs solve. Kind "again" is another experiment, in which both
// solve.
func counting(kind string) versustest.Directory {
	d := versustest.Directory{
		Arms: []versustest.Arm{
			{Name: "a", Agent: "claude-code", Model: "claude-sonnet-4-5", Does: versustest.Solves},
			{Name: "b", Agent: "codex", Model: "claude-sonnet-4-5", Does: versustest.Solves},
		},
		Tasks:     12,
		Runs:      2,
		Workspace: "export",
		Distinct:  true,
		Does: func(_ int, arm versustest.Arm, run int) string {
			if arm.Name == "a" && run == 1 && kind != "again" {
				return kind
			}
			return versustest.Solves
		},
	}
	if kind == "again" {
		d.Experiment = "sha256:again"
	}
	return d
}

// treated is an experiment about a skill, which the model opens in the first of two runs.
func treated(kind string) versustest.Directory {
	const model = "claude-sonnet-4-5"
	d := versustest.Directory{
		Arms: []versustest.Arm{
			{Name: "before", Agent: "claude-code", Model: model, Does: versustest.Mistakes},
			{Name: "after", Agent: "claude-code", Model: model, Does: versustest.Solves},
		},
		Tasks:     12,
		Runs:      2,
		Workspace: "export",
		Given: func(arm versustest.Arm, run int) *ledger.Treatment {
			if kind == "old" {
				return nil
			}
			served := ledger.Served{Model: model + "-20250929", Asked: model, Calls: 4}
			if kind == "drifted" && run == 1 && arm.Name == "after" {
				served.Model = model + "-20261101"
			}
			given := &ledger.Treatment{
				Context:      "project",
				Served:       []ledger.Served{served},
				SystemTokens: 14000,
				VendorTokens: 13900,
				Tools:        []string{"Bash", "Skill"},
			}
			if arm.Name == "before" && kind != "contaminated" {
				return given
			}
			opened := run == 0
			skill := ledger.Piece{
				Kind:   ledger.PieceSkill,
				Name:   "csv-tools",
				Path:   ".claude/skills/csv-tools/SKILL.md",
				Digest: "sha256:1",
				From:   ledger.FromArm,
				Given:  ledger.GivenWhole,
				Opened: &opened,
				Where:  "messages",
				Tokens: 97,
			}
			if kind == "unknown" {
				given.Unknown = "the model calls did not pass the gateway: subscription"
				skill.Given, skill.Opened, skill.Why = ledger.GivenUnknown, nil, given.Unknown
			}
			if arm.Name == "before" {
				skill.From = ledger.FromOther
			}
			given.Pieces = []ledger.Piece{skill}
			return given
		},
	}
	if kind == "replayed" {
		d.Replayed = "after"
	}
	return d
}

func three() versustest.Directory {
	return versustest.Three([3]string{"claude-code", "codex", "pi-agent"}, "claude-sonnet-4-5")
}

// A signal while the tasks are read is an interruption and no mistake in the call.
func TestRunInterruptedWhilePreparing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stderr bytes.Buffer
	code := cli.Run(ctx, []string{
		"fit", "versus", "run", "../../examples/versus/go.yaml", "--agents", "builtin",
		"--output", t.TempDir(),
	}, &console.Console{Stdout: &bytes.Buffer{}, Stderr: &stderr})
	if code != console.ExitInterrupted || !strings.Contains(stderr.String(), "interrupted before the first cell") {
		t.Errorf("exit code %d, want 130: %s", code, &stderr)
	}
}
