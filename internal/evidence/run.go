package evidence

import (
	"slices"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// Version is the version of a Run's JSON. A cached Run of another version is rebuilt.
const Version = 2

// Status is the outcome of a cell.
type Status string

// The statuses of a cell.
const (
	StatusOK           Status = "ok"
	StatusEnvError     Status = "env_error" // an environmental cause: missing data, not a failure
	StatusTimeout      Status = "timeout"
	StatusDisqualified Status = "disqualified" // a critical integrity flag stands, on a task that is described
)

// Run is the evidence about one attempt.
type Run struct {
	Version int        `json:"version"`
	Key     ledger.Key `json:"key"`
	Agent   string     `json:"agent"`
	Status  Status     `json:"status"`
	// Session is the attempt's session without its events, messages and system prompts: usage,
	// times, milestones, outcome, exit code. RunID, TaskID, RunIndex, Diff, Verify, TaskResolved
	// and Integrity are filled in, and the milestones have the verification.
	Session session.EnrichedSession `json:"session"`
	// Captured says that there was a trace in which an agent spoke.
	Captured bool          `json:"captured"`
	Rubric   QualityRubric `json:"rubric"`
	// Attribution says why the attempt is unresolved; nil if it is resolved, disqualified only by a
	// flag, or not known.
	Attribution *ErrorAttribution `json:"attribution,omitempty"`
	Efficiency  Efficiency        `json:"efficiency"`
	Files       []FileChange      `json:"files"`
	// Truncated says that the diff was cut, so that its lines are a lower bound.
	Truncated bool         `json:"truncated,omitempty"`
	Prompts   []PromptText `json:"prompts"`
	// Steps are the part of the trace that judges see: all edits, test runs and failures and the
	// last messages, up to a limit.
	Steps []Step `json:"steps"`
	// StepsLeftOut counts the steps that there was no room for.
	StepsLeftOut int `json:"stepsLeftOut,omitempty"`
}

// Resolved reports whether the attempt resolved its task; nil is missing data.
func (r *Run) Resolved() *bool { return r.Session.TaskResolved }

// Disqualified reports whether a critical integrity flag stands on a task that is described.
func (r *Run) Disqualified() bool { return r.Status == StatusDisqualified }

// TestsTampered reports whether a flag says that tests or the check were tampered with, so that a
// passing check proves nothing.
func (r *Run) TestsTampered() bool {
	return slices.ContainsFunc(r.Session.Integrity, func(flag session.IntegrityFlag) bool {
		return isOneOf(flag.Kind, FlagTestDeleted, FlagTestSkipped, flagAssertionWeakened, flagVerifyTampered)
	})
}

// FileChange is the change of one file in the diff.
type FileChange struct {
	Path    string `json:"path"`
	Old     string `json:"old,omitempty"` // its name before, where that was another
	Status  string `json:"status"`        // added, deleted, modified, renamed, copied, mode
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary,omitempty"`
	// Class is source, test or generated; only source counts for the size of a change.
	Class string `json:"class"`
	// Edit is seen if the trace shows a successful edit of the file, else unseen.
	Edit string `json:"edit"`
}

// The classes of files, and whether an edit was seen.
const (
	ClassSource    = "source"
	classTest      = "test"
	classGenerated = "generated"

	EditSeen   = "seen"
	EditUnseen = "unseen"
)

// PromptText is one piece of text that reached the model beside the conversation.
type PromptText struct {
	Label     string `json:"label"`
	Content   string `json:"content"`
	TurnIndex int    `json:"turnIndex"`
	// Bytes and SHA256 are those of the whole text; Content is cut where it is very long.
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Step is one event of a trace as judges may see it. Line is its address: "trace:LINE".
type Step struct {
	Line      int64  `json:"line"`
	Seq       int    `json:"seq"`
	TurnIndex int    `json:"turnIndex"`
	ElapsedMs int64  `json:"elapsedMs"`
	Kind      string `json:"kind"` // message, call, result, error
	// Tool is the canonical tool of a call or a result, so that it names no agent.
	Tool string `json:"tool,omitempty"`
	// Text is what was said, called or returned; the middle of long texts is left out.
	Text     string `json:"text"`
	IsError  bool   `json:"isError,omitempty"`
	ExitCode *int   `json:"exitCode,omitempty"`
}

// The kinds of steps.
const (
	StepMessage = "message"
	StepCall    = "call"
	StepResult  = "result"
	stepError   = "error"
)

// QualityRubric has the five scores between 0 and 1; nil is not measurable by code.
type QualityRubric struct {
	Correctness  *float64 `json:"correctness"`
	Completeness *float64 `json:"completeness"`
	CodeQuality  *float64 `json:"codeQuality"`
	MinimalDiff  *float64 `json:"minimalDiff"`
	Verification *float64 `json:"verification"`
}

// The five dimensions of the rubric.
const (
	Correctness  = "correctness"
	Completeness = "completeness"
	CodeQuality  = "codeQuality"
	MinimalDiff  = "minimalDiff"
	Verification = "verification"
)

// Dimensions lists the five dimensions in the order of their weight.
func Dimensions() []string {
	return []string{Correctness, Verification, Completeness, CodeQuality, MinimalDiff}
}

// Of returns the score of a dimension; nil is not measurable.
func (q *QualityRubric) Of(dimension string) *float64 {
	switch dimension {
	case Correctness:
		return q.Correctness
	case Completeness:
		return q.Completeness
	case CodeQuality:
		return q.CodeQuality
	case MinimalDiff:
		return q.MinimalDiff
	case Verification:
		return q.Verification
	}
	return nil
}

// Efficiency measures the effort of an attempt.
type Efficiency struct {
	WallClockMs int64 `json:"wallClockMs"`
	Turns       int   `json:"turns"`
	// ToolCalls counts calls by what they count as: read, search, list, edit, write, test, build,
	// bash, …
	ToolCalls      map[string]int     `json:"toolCalls"`
	Usage          session.TokenUsage `json:"usage"`
	EditsAttempted int                `json:"editsAttempted"`
	EditsFailed    int                `json:"editsFailed"`
	// ExplorationShare is the share of reads, searches and listings among all calls; nil without
	// calls.
	ExplorationShare *float64 `json:"explorationShare"`
	// FirstEditMs and GreenMs are when the first edit succeeded and when tests first passed after
	// an edit, counted from the start; nil: never seen.
	FirstEditMs *int64 `json:"firstEditMs"`
	GreenMs     *int64 `json:"greenMs"`
	// CacheHitRatio is the share of input tokens that came from the provider's cache; nil without
	// input.
	CacheHitRatio *float64 `json:"cacheHitRatio"`
}
