package foreign

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/jsondoc"
	"github.com/fit-eval/fit/ledger"
)

// harborReader reads a job of Harbor: its directory with one of each trial, or a result.json that
// holds all trials. A trial is a run, an agent with its version and model an arm.
var harborReader = reader{format: "harbor", finds: findHarbor, read: readHarbor}

const harborFile = "result.json"

// maxDocument bounds a file that is read as a whole.
const maxDocument = 64 << 20

func findHarbor(path string, info os.FileInfo) []string {
	if !info.IsDir() {
		if isHarbor(path, "task_name", "trial_results", "n_total_trials") {
			return []string{path}
		}
		return nil
	}
	var files []string
	entries, _ := os.ReadDir(path) // what cannot be read has none
	for _, entry := range entries {
		file := filepath.Join(path, entry.Name(), harborFile)
		if entry.IsDir() && isHarbor(file, "task_name") {
			files = append(files, file)
		}
	}
	if file := filepath.Join(path, harborFile); len(files) == 0 && isHarbor(file, "trial_results") {
		return []string{file}
	}
	return files
}

// isHarbor reports whether a file has a result with any of the members.
func isHarbor(file string, names ...string) bool {
	return jsondoc.Has(file, func(members map[string]byte) bool {
		return slices.ContainsFunc(names, func(name string) bool { return members[name] != 0 }) &&
			members["started_at"] != 0
	})
}

func readHarbor(s *source, path string) error {
	content, err := readBounded(path)
	if err != nil {
		return err
	}
	var job struct {
		harborTrial
		Trials []harborTrial `json:"trial_results"`
	}
	if err := jsondoc.Decode(content, &job); err != nil { // Harbor is Python
		return err
	}
	s.absentTrials()
	trace := filepath.Join(filepath.Dir(path), "agent", "trajectory.json")
	if job.TaskName != "" {
		if _, err := os.Lstat(trace); err != nil {
			trace = ""
		} else {
			trace = s.name(trace)
		}
		return s.trial(&job.harborTrial, trace)
	}
	if len(job.Trials) == 0 {
		return errors.New("there is no trial in it")
	}
	for i := range job.Trials {
		if err := s.trial(&job.Trials[i], ""); err != nil {
			return err
		}
	}
	return nil
}

// absentTrials notes how many trials of a job have no result: the job was cut.
func (s *source) absentTrials() {
	if len(s.list) > 0 {
		return
	}
	var job struct {
		Total  int               `json:"n_total_trials"`
		Trials []json.RawMessage `json:"trial_results"`
	}
	content, err := readBounded(filepath.Join(s.root, harborFile))
	if err == nil && jsondoc.Decode(content, &job) != nil {
		return // whoever reads the trials says so
	}
	begun, _ := filepath.Glob(filepath.Join(escapeGlob(s.root), "*", "config.json"))
	if have, want := max(s.files, len(job.Trials)), max(job.Total, len(begun)); have < want {
		s.incomplete = fmt.Sprintf("%d of %d trials have a result: which are missing is not known", have, want)
	}
}

// readBounded reads a file that is not too large.
func readBounded(path string) ([]byte, error) {
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxDocument+1))
	if err == nil && len(content) > maxDocument {
		err = fmt.Errorf("it is larger than %d bytes", maxDocument)
	}
	return content, err
}

// trial adds a trial.
func (s *source) trial(trial *harborTrial, trace string) error {
	if trial.TaskName == "" {
		return errors.New("a trial names no task")
	}
	r := run{
		task:         trial.TaskName,
		index:        -1,
		agent:        trial.AgentInfo.Name,
		agentVersion: trial.AgentInfo.Version,
		arm:          cmp.Or(trial.AgentInfo.Name, "agent not known"),
		trace:        trace,
		startMs:      msOf(trial.StartedAt),
		endMs:        msOf(trial.FinishedAt),
		phaseMs:      map[string]int64{},
	}
	if trial.AgentInfo.Version != "" {
		r.arm += " " + trial.AgentInfo.Version
	}
	if model := trial.AgentInfo.Model; model != nil && model.Name != "" {
		r.model = model.Name
		r.arm += " " + model.Name
	}
	r.arm = cmp.Or(trial.Arm, r.arm)
	if trial.TaskChecksum != "" {
		r.content = "sha256:" + strings.TrimPrefix(trial.TaskChecksum, "sha256:")
	}
	for phase, took := range map[string]*harborTime{
		"setup": trial.Setup, "agent": trial.Execution, "grade": trial.Verification,
	} {
		if took != nil {
			r.phaseMs[phase] = max(0, msOf(took.FinishedAt)-msOf(took.StartedAt))
		}
	}
	if r.duration = r.phaseMs["agent"]; r.startMs > 0 && r.endMs > r.startMs {
		r.duration = r.endMs - r.startMs
	}
	if r.startMs < firstMoment { // we write the length of what began nobody knows when
		r.startMs, r.endMs = 0, 0
	}
	if u := trial.AgentResult; u != nil {
		r.cost = u.Cost
		if u.Input+u.Output > 0 {
			r.tokens = &ledger.UsageJSON{
				InputTokens:     max(0, u.Input-u.Cache),
				CacheReadTokens: max(0, u.Cache),
				OutputTokens:    max(0, u.Output),
			}
		}
	}
	if err := s.rewarded(&r, trial); err != nil {
		return err
	}
	return s.add(r)
}

// rewarded fills in what came out. An agent that ran out of time has an exception and a reward that
// counts; after any other exception nobody knows whether a service failed or the agent.
func (s *source) rewarded(r *run, trial *harborTrial) error {
	exception := ""
	if e := trial.Exception; e != nil {
		exception = e.Type + ": " + e.Message
		if e.Type == "AgentTimeoutError" {
			r.outcome = "timeout"
		}
	}
	if trial.Verifier == nil || len(trial.Verifier.Rewards) == 0 || exception != "" && r.outcome == "" {
		failed(r, cmp.Or(exception, "the trial has no reward"))
		return nil
	}
	names := slices.Collect(maps.Keys(trial.Verifier.Rewards))
	s.rewards = append(s.rewards, names...)
	name := cmp.Or(s.Score, "reward")
	if !slices.Contains(names, name) && s.Score == "" {
		var err error
		if name, err = s.choose("reward", names); err != nil {
			return err
		}
	}
	if s.reward = cmp.Or(s.reward, name); s.reward != name { // other trials have another
		_, err := s.choose("reward", s.rewards)
		return err
	}
	reward := trial.Verifier.Rewards[name]
	if reward == nil {
		failed(r, "the verifier gave no "+name)
		return nil
	}
	return s.scored(r, float64(*reward), true)
}

// firstMoment is the first one at which anything can have been run: a year after the epoch.
const firstMoment = 365 * 24 * 3600 * 1000

// msOf is a moment in epoch milliseconds; 0 where it is not known.
func msOf(moment string) int64 {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if at, err := time.Parse(layout, moment); err == nil {
			return at.UnixMilli()
		}
	}
	return 0
}
