package versus

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/ledger"
)

// Listed is a run directory in an inventory.
type Listed struct {
	Directory string `json:"directory"`
	RunID     string `json:"runId"`
	// CreatedMs is when the newest record was made.
	CreatedMs int64    `json:"createdMs"`
	Tasks     []string `json:"tasks"`
	Arms      []string `json:"arms"`
	// Cells counts the cells with a final record, of those Planned; Planned is 0 if there is no
	// plan.
	Cells   int      `json:"cells"`
	Planned int      `json:"planned"`
	Passed  int      `json:"passed"`
	CostUSD *float64 `json:"costUsd"`
	// Problem says why nothing else is known.
	Problem string `json:"problem,omitempty"`
	// Signer says who signed the results.
	Signer ledger.Signer `json:"-"`
}

// Inventory is a list of run directories.
type Inventory struct {
	SchemaVersion string   `json:"schemaVersion"`
	Runs          []Listed `json:"runs"`
}

// Robot writes the inventory as one JSON document.
func (i *Inventory) Robot(w io.Writer) error { return robot(w, i) }

// List finds the run directories in a directory, or that directory itself. It looks one level deep,
// because agents may have written below a run directory. It opens no traces or replies. The key is
// the user's, or nil.
func List(dir string, sinceMs int64, key *ledger.SigningKey) (*Inventory, error) {
	inventory := &Inventory{SchemaVersion: schemaVersion, Runs: []Listed{}}
	if isRunDirectory(dir) {
		inventory.add(dir, ".", sinceMs, key)
		return inventory, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	for _, entry := range entries {
		if below := filepath.Join(dir, entry.Name()); entry.IsDir() && isRunDirectory(below) {
			inventory.add(below, entry.Name(), sinceMs, key)
		}
	}
	return inventory, nil
}

func isRunDirectory(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, experiment.LedgerFile))
	return err == nil && info.Mode().IsRegular()
}

func (i *Inventory) add(dir, name string, sinceMs int64, key *ledger.SigningKey) {
	listed := Listed{Directory: name, Tasks: []string{}, Arms: []string{}}
	if err := listed.read(dir, key); err != nil {
		listed.Problem = err.Error()
		if named, ok := errors.AsType[*fs.PathError](err); ok { // the name says where it is
			listed.Problem = named.Err.Error()
		}
	}
	if listed.Problem != "" || listed.CreatedMs >= sinceMs {
		i.Runs = append(i.Runs, listed)
	}
}

func (l *Listed) read(dir string, key *ledger.SigningKey) error {
	path := filepath.Join(dir, experiment.LedgerFile)
	contents, err := ledger.ReadFile(path)
	if err == nil {
		err = contents.Damage(experiment.LedgerFile)
	}
	if err != nil {
		return err
	}
	l.Signer = ledger.SignerOf(key, path, contents)
	plan, _, err := results.Planned(dir, contents)
	if err != nil {
		return err
	}
	if plan != nil {
		l.RunID, l.Planned = plan.ID, len(plan.Tasks)*len(plan.Arms)*plan.Runs
		for _, task := range plan.Tasks {
			l.Tasks = append(l.Tasks, task.ID)
		}
		for _, arm := range plan.Arms {
			l.Arms = append(l.Arms, arm.Name)
		}
	}
	for _, record := range ledger.Last(contents.Records) {
		l.RunID, l.CreatedMs = record.Experiment, max(l.CreatedMs, record.EndMs)
		if !slices.Contains(l.Tasks, record.TaskID) {
			l.Tasks = append(l.Tasks, record.TaskID)
		}
		if !slices.Contains(l.Arms, record.Arm) {
			l.Arms = append(l.Arms, record.Arm)
		}
		if record.Verdict != ledger.Error {
			l.Cells++
		}
		if record.Verdict == ledger.Pass {
			l.Passed++
		}
	}
	l.CostUSD = ledger.SpendingOf(contents.Records).CostUSD
	return nil
}
