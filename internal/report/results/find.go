package results

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/fit-eval/fit/internal/experiment"
)

// ErrNone is the error of directories without a ledger.
var ErrNone = errors.New("no results")

// Find returns the directories with ledgers: the directory itself, or those right below it.
func Find(dir string) ([]string, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%w: %s is not a directory", ErrNone, dir)
	}
	if isFile(filepath.Join(dir, experiment.LedgerFile)) {
		return []string{dir}, nil
	}
	var found []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dir, err)
	}
	for _, entry := range entries {
		below := filepath.Join(dir, entry.Name())
		if entry.IsDir() && entry.Name() != experiment.RunsDir && !strings.HasPrefix(entry.Name(), ".") &&
			isFile(filepath.Join(below, experiment.LedgerFile)) {
			found = append(found, below)
		}
	}
	return found, nil
}

// IsLedger reports whether a file is a ledger, whatever its name: its first record is sealed.
func IsLedger(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	line, _ := bufio.NewReader(io.LimitReader(file, maxFirstRecord)).ReadBytes('\n')
	var first struct{ Experiment, Hash, TaskID string }
	return json.Unmarshal(line, &first) == nil && first.Experiment != "" && first.Hash != "" && first.TaskID != ""
}

// maxFirstRecord bounds the record by which a ledger is recognised.
const maxFirstRecord = 64 << 20

func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}
