package foreign

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/ledger"
)

// harborJob is the result.json of a job of Harbor, with the result.json of each of its trials.
type harborJob struct {
	ID          string        `json:"id"`
	StartedAt   string        `json:"started_at"`
	FinishedAt  string        `json:"finished_at"`
	TotalTrials int           `json:"n_total_trials"`
	Stats       harborStats   `json:"stats"`
	Trials      []harborTrial `json:"trial_results"`
}

type harborStats struct {
	Trials int `json:"n_trials"`
	Errors int `json:"n_errors"`
}

// harborTrial is the last attempt at a cell.
type harborTrial struct {
	TaskName     string           `json:"task_name"`
	TrialName    string           `json:"trial_name"`
	TaskChecksum string           `json:"task_checksum"`
	AgentInfo    harborAgent      `json:"agent_info"`
	AgentResult  *harborUsage     `json:"agent_result"`
	Verifier     *harborRewards   `json:"verifier_result"`
	Exception    *harborException `json:"exception_info"`
	StartedAt    string           `json:"started_at,omitempty"`
	FinishedAt   string           `json:"finished_at,omitempty"`
	Setup        *harborTime      `json:"environment_setup"`
	Execution    *harborTime      `json:"agent_execution"`
	Verification *harborTime      `json:"verifier"`
	Steps        []harborStep     `json:"step_results"`
	Arm          string           `json:"fit_arm,omitempty"` // ours: Harbor has no name for it
}

type harborAgent struct {
	Name    string       `json:"name"`
	Version string       `json:"version"`
	Model   *harborModel `json:"model_info"`
}

type harborModel struct {
	Name string `json:"name"`
}

type harborUsage struct {
	Input  int64    `json:"n_input_tokens"` // those of the cache among them
	Cache  int64    `json:"n_cache_tokens"`
	Output int64    `json:"n_output_tokens"`
	Cost   *float64 `json:"cost_usd"`
}

type harborRewards struct {
	Rewards map[string]*harborNumber `json:"rewards"`
}

// harborNumber is a reward. Some verifiers write true and false, which are 1 and 0.
type harborNumber float64

// UnmarshalJSON reads a reward.
func (n *harborNumber) UnmarshalJSON(raw []byte) error {
	if pass := string(raw) == "true"; pass || string(raw) == "false" {
		*n = 0
		if pass {
			*n = 1
		}
		return nil
	}
	return json.Unmarshal(raw, (*float64)(n))
}

type harborException struct {
	Type      string `json:"exception_type"`
	Message   string `json:"exception_message"`
	Traceback string `json:"exception_traceback"`
	At        string `json:"occurred_at"`
}

type harborTime struct {
	StartedAt  string `json:"started_at"`
	FinishedAt string `json:"finished_at"`
}

type harborStep struct {
	Name     string         `json:"step_name"`
	Verifier *harborRewards `json:"verifier_result"`
}

// Harbor writes each record as a trial of Harbor's result.json. A trial without a
// verdict has an exception and no rewards.
func Harbor(w io.Writer, records []ledger.Record) error {
	job := harborJob{Trials: []harborTrial{}}
	var began, ended int64
	for _, r := range records {
		trial := harborTrialOf(&r)
		job.ID = r.Experiment
		job.Trials = append(job.Trials, trial)
		if trial.Exception != nil {
			job.Stats.Errors++
		}
		if began == 0 || r.StartMs < began {
			began = r.StartMs
		}
		ended = max(ended, r.EndMs)
	}
	job.StartedAt, job.FinishedAt = harborMoment(began), harborMoment(ended)
	job.TotalTrials, job.Stats.Trials = len(job.Trials), len(job.Trials)
	return jsonenc.WriteIndented(w, job)
}

// harborMoment is empty where the moment is not known.
func harborMoment(ms int64) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano)
}

func harborTrialOf(r *ledger.Record) harborTrial {
	trial := harborTrial{
		TaskName:     r.TaskID,
		TrialName:    fmt.Sprintf("%s__%s__%d", r.TaskID, r.Arm, r.RunIndex),
		Arm:          r.Arm,
		TaskChecksum: strings.TrimPrefix(r.Digests.Visible, "sha256:"),
		AgentInfo:    harborAgent{Name: r.Agent, Version: r.AgentVersion},
		Exception:    harborExceptionOf(r),
		StartedAt:    harborMoment(r.StartMs),
		FinishedAt:   harborMoment(r.EndMs),
	}
	if r.Model.Agent != "" {
		trial.AgentInfo.Model = &harborModel{Name: r.Model.Agent}
	}
	if t := r.Tokens; t != nil {
		trial.AgentResult = &harborUsage{
			Input:  t.InputTokens + t.CacheReadTokens + t.CacheWriteTokens,
			Cache:  t.CacheReadTokens,
			Output: t.OutputTokens,
			Cost:   r.CostUSD,
		}
	}
	trial.rewards(r)
	if r.StartMs == 0 && len(r.PhaseMs) > 0 && r.DurationMs > 0 { // the length is known, and not the moment
		trial.StartedAt, trial.FinishedAt = harborMoment(1), harborMoment(1+r.DurationMs)
	}
	phases := r.PhaseMs
	if len(phases) == 0 && r.DurationMs > 0 {
		phases = map[string]int64{"agent": r.DurationMs} // all that is known
	}
	at := max(r.StartMs, 1) // phases have a length even if nobody knows when they began
	for _, phase := range []string{"setup", "preflight", "agent", "seal", "grade"} {
		took := &harborTime{StartedAt: harborMoment(at), FinishedAt: harborMoment(at + phases[phase])}
		at += phases[phase]
		if _, ran := phases[phase]; !ran {
			continue
		}
		switch phase {
		case "setup":
			trial.Setup = took
		case "agent":
			trial.Execution = took
		case "grade":
			trial.Verification = took
		}
	}
	return trial
}

// rewards fills in the rewards of a verifier, or for another kind of task its score or verdict.
func (trial *harborTrial) rewards(r *ledger.Record) {
	if r.Verdict == ledger.Error {
		return
	}
	rewards := map[string]*harborNumber{}
	if r.HiddenTests != nil {
		for _, raw := range r.HiddenTests.Details {
			var row struct {
				Test, Step, Key string
				Reward          *float64
			}
			if json.Unmarshal(raw, &row) != nil || row.Reward == nil {
				continue
			}
			if row.Step == "" {
				rewards[row.Test] = (*harborNumber)(row.Reward)
				continue
			}
			i := slices.IndexFunc(trial.Steps, func(step harborStep) bool { return step.Name == row.Step })
			if i < 0 {
				i = len(trial.Steps)
				trial.Steps = append(trial.Steps, harborStep{
					Name:     row.Step,
					Verifier: &harborRewards{Rewards: map[string]*harborNumber{}},
				})
			}
			trial.Steps[i].Verifier.Rewards[row.Key] = (*harborNumber)(row.Reward)
		}
	}
	if len(rewards) == 0 {
		reward := new(harborNumber)
		switch {
		case r.Score != nil:
			*reward = harborNumber(*r.Score)
		case r.Verdict == ledger.Pass:
			*reward = 1
		}
		rewards["reward"] = reward
	}
	trial.Verifier = &harborRewards{Rewards: rewards}
}

// harborErrors are the exceptions of Harbor by the causes and classes of our errors.
var harborErrors = map[string]string{
	ledger.CauseHealthcheck: "HealthcheckError",
	ledger.CauseNoReward:    "RewardFileNotFoundError",
	ledger.CauseEmptyReward: "RewardFileEmptyError",
	ledger.CauseTimeout:     "VerifierTimeoutError",
	ledger.CauseBadReward:   "VerifierOutputParseError",
	ledger.ErrorInterrupted: "CancelledError",
	ledger.ErrorAgentStart:  "NonZeroAgentExitCodeError",
	ledger.ErrorProvider:    "NonZeroAgentExitCodeError",
	ledger.ErrorAuth:        "NonZeroAgentExitCodeError",
}

// harborExceptionOf returns what went wrong: why there is no verdict, or how the agent ended. An
// agent that ran out of time has a reward beside it.
func harborExceptionOf(r *ledger.Record) *harborException {
	found := &harborException{At: harborMoment(r.EndMs)}
	switch {
	case r.Verdict == ledger.Error:
		found.Message = r.ErrorMessage
		found.Type = cmp.Or(harborErrors[r.ErrorCause], harborErrors[r.ErrorClass], "RuntimeError")
	case r.AgentError != nil && r.Outcome == "timeout":
		found.Type, found.Message = "AgentTimeoutError", r.AgentError.Message
	case r.AgentError != nil:
		found.Type, found.Message = "NonZeroAgentExitCodeError", r.AgentError.Message
	default:
		return nil
	}
	return found
}
