package view

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/report/versus/versustest"
	"github.com/fit-eval/fit/ledger"
)

// The pages say what compare and show say: what the models were given, and why nothing is claimed.
func TestPagesSayWhatModelsWereGiven(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "treated")
	if err := (versustest.Directory{
		Arms: []versustest.Arm{
			{Name: "before", Agent: "claude-code", Model: "m", Does: versustest.Mistakes},
			{Name: "after", Agent: "claude-code", Model: "m", Does: versustest.Solves},
		},
		Tasks:     12,
		Runs:      2,
		Workspace: "export",
		Given: func(arm versustest.Arm, run int) *ledger.Treatment {
			served := []ledger.Served{{Model: "m-1", Asked: "m", Calls: 1}}
			given := &ledger.Treatment{Context: "project", Served: served}
			if arm.Name == "after" {
				given.Served[0].Model = []string{"m-1", "m-2"}[run]
				given.Pieces = []ledger.Piece{{
					Kind:  ledger.PieceSkill,
					Name:  "csv-tools",
					From:  ledger.FromArm,
					Given: ledger.GivenWhole,
				}}
			}
			return given
		},
	}).Write(dir); err != nil {
		t.Fatal(err)
	}
	p := open(t, dir)
	id := p.list()[0].ID
	var answer struct {
		Experiment listEntry
		Comparison struct {
			Treatment struct{ Lines []string }
			Withheld  []struct{ Key, Allow string }
		}
	}
	p.read("/api/experiments/"+id, &answer)
	const line = "treatment: skill csv-tools given in 24 of 24 runs of after and 0 of 24 of before"
	if lines := answer.Comparison.Treatment.Lines; len(lines) != 1 || lines[0] != line {
		t.Errorf("%q", lines)
	}
	if withheld := answer.Comparison.Withheld; len(withheld) != 1 || withheld[0].Key != "drift" ||
		!strings.Contains(answer.Experiment.Sentence, "--allow drift accepts it") {
		t.Errorf("%+v %s", withheld, answer.Experiment.Sentence)
	}
	var cell struct {
		Record struct{ Treatment *ledger.Treatment }
	}
	p.read("/api/experiments/"+id+"/cells/fix-add-00/after/0", &cell)
	if given := cell.Record.Treatment; given == nil || len(given.Pieces) != 1 || given.Pieces[0].Name != "csv-tools" {
		t.Errorf("%+v", given)
	}
}
