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
	causeUnknown     = "unknown"      // nobody can know what a check asks
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

// contradiction is the error of two files that do not say the same. The agent's code runs among the
// verifier's tests, where it can write a file of its own, so neither counts.
type contradiction struct{ text, json string }

func (e *contradiction) Error() string {
	return fmt.Sprintf("%s says %s and %s says %s: neither counts, because the agent's code may have written one",
		rewardText, e.text, rewardJSON, e.json)
}

// readRewards reads what a verifier left: its reward.json, or its reward.txt where there is no
// other. Where there are both, they must agree.
func readRewards(dir string) (map[string]float64, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	content, err := readReward(root, rewardJSON)
	text, textErr := readReward(root, rewardText)
	alone := errors.Is(textErr, fs.ErrNotExist)
	switch {
	case errors.Is(err, fs.ErrNotExist) && alone:
		return nil, fmt.Errorf("%w: there is neither %s nor %s in %s", errNoReward, rewardJSON, rewardText,
			workspace.HarborRewards)
	case errors.Is(err, fs.ErrNotExist) && textErr != nil:
		return nil, textErr
	case errors.Is(err, fs.ErrNotExist):
		value, err := parseReward(text)
		if err != nil {
			return nil, err
		}
		return map[string]float64{"reward": value}, nil
	case err != nil:
		return nil, err
	}
	rewards, err := parseRewards(content)
	if err != nil || alone {
		return rewards, err
	}
	// The text is the reward that has no other name, or the mean of those that have one.
	whole, ok := rewards["reward"]
	if !ok {
		for _, value := range rewards {
			whole += value / float64(len(rewards))
		}
	}
	if value, err := parseReward(text); err != nil || math.Abs(value-whole) > 1e-6 {
		return nil, &contradiction{
			text: strconv.Quote(display.CutBytes(strings.TrimSpace(string(text)), 100)),
			json: strconv.FormatFloat(whole, 'g', -1, 64),
		}
	}
	return rewards, nil
}

// parseReward reads the one number of a reward.txt.
func parseReward(content []byte) (float64, error) {
	text := strings.TrimSpace(string(content))
	value, err := strconv.ParseFloat(text, 64)
	switch {
	case text == "":
		return 0, errEmptyReward
	case err != nil || math.IsNaN(value) || math.IsInf(value, 0):
		return 0, fmt.Errorf("the verifier's %s is not one finite number: %q", rewardText,
			display.CutBytes(text, 100))
	}
	return value, nil
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
