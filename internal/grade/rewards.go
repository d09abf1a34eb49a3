package grade

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/workspace"
)

// The files that a verifier writes rewards to.
const (
	rewardJSON = "reward.json" // an object of numbers
	rewardText = "reward.txt"  // one number, where there is no reward.json
	// maxRewardFile bounds each.
	maxRewardFile = 1 << 20
)

// The values of Result.Cause.
const (
	causeKilled      = "killed"       // something killed a grader or a program of it
	causeTimeout     = "timeout"      // the verifier took too long
	causeNoReward    = "no_reward"    // the verifier wrote none
	causeEmptyReward = "empty_reward" // the verifier's file has nothing in it
	causeBadReward   = "bad_reward"   // the verifier's file cannot be read
	// CauseNoProcess is set if the machine could not start a process of a grader.
	CauseNoProcess = "no_process"
)

var (
	errNoReward    = errors.New("the verifier wrote no reward")
	errEmptyReward = errors.New("the verifier's " + rewardText + " is empty")
)

// rewardCause names what is wrong with the rewards of a verifier.
func rewardCause(err error) string {
	switch {
	case errors.Is(err, errNoReward):
		return causeNoReward
	case errors.Is(err, errEmptyReward):
		return causeEmptyReward
	}
	return causeBadReward
}

// readRewards reads what a verifier left.
func readRewards(dir string) (map[string]float64, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	content, err := readReward(root, rewardJSON)
	if err == nil {
		return parseRewards(content)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	content, err = readReward(root, rewardText)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is neither %s nor %s in %s", errNoReward, rewardJSON, rewardText,
			workspace.HarborRewards)
	}
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(string(content))
	value, err := strconv.ParseFloat(text, 64)
	switch {
	case text == "":
		return nil, errEmptyReward
	case err != nil || math.IsNaN(value) || math.IsInf(value, 0):
		return nil, fmt.Errorf("the verifier's %s is not one finite number: %q", rewardText,
			display.CutBytes(text, 100))
	}
	return map[string]float64{"reward": value}, nil
}

// readReward reads a regular file.
func readReward(root *os.Root, name string) ([]byte, error) {
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("the verifier's %s is not a regular file", name)
	case info.Size() > maxRewardFile:
		return nil, fmt.Errorf("the verifier's %s is larger than %d bytes", name, maxRewardFile)
	}
	return root.ReadFile(name)
}

// parseRewards reads a flat object of finite numbers with distinct names.
func parseRewards(content []byte) (map[string]float64, error) {
	wrong := func(why string) error {
		return fmt.Errorf("the verifier's %s is not an object of numbers: %s", rewardJSON, why)
	}
	if !json.Valid(content) {
		return nil, wrong("it is not valid JSON")
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	if opening, err := decoder.Token(); err != nil || opening != json.Delim('{') {
		return nil, wrong("it is something else")
	}
	rewards := map[string]float64{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, err
		}
		value, ok := finite(raw)
		if _, twice := rewards[name]; twice {
			return nil, wrong(fmt.Sprintf("%q is in it twice", display.CutBytes(name, 100)))
		}
		if !ok {
			return nil, wrong(fmt.Sprintf("%q is not a finite number", display.CutBytes(name, 100)))
		}
		rewards[name] = value
	}
	if len(rewards) == 0 {
		return nil, wrong("it is empty")
	}
	return rewards, nil
}

// rewardRows returns scored rows, one for each reward.
func rewardRows(rewards map[string]float64, said string) []Row {
	rows := make([]Row, 0, len(rewards))
	for _, name := range slices.Sorted(maps.Keys(rewards)) {
		rows = append(rows, rewardRow(map[string]any{"test": name}, rewards[name], said))
	}
	return rows
}

// rewardRow returns a row that passes with a reward of 1 and otherwise counts a share of its
// weight. A row that does not pass has the verifier's message.
func rewardRow(fields map[string]any, value float64, said string) Row {
	fields["pass"], fields["reward"] = value >= 1, value
	if value < 1 && said != "" {
		fields["message"] = said
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return unreadable(fmt.Sprint(fields["test"]))
	}
	row := Classify(raw)
	share := min(max(value, 0), 1)
	row.Share = &share
	return row
}

// keepTree keeps the regular files of a directory.
func (g *grading) keepTree(name, dir string) {
	_ = filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil //nolint:nilerr // what cannot be read is not kept
		}
		rel, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		if content, err := os.ReadFile(file); err == nil {
			g.keep(filepath.ToSlash(filepath.Join(name, rel)), content)
		}
		return nil
	})
}
