package versus

import (
	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/failure"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/stats"
)

// schemaVersion is the version of the EvalReport document. Fields may be added; none is renamed or
// removed.
const schemaVersion = "1"

// EvalReport is the answer of a head to head.
type EvalReport struct {
	SchemaVersion string `json:"schemaVersion"`
	RunID         string `json:"runId"`
	// CreatedMs is when the newest record was made, so that the same content gives the same report.
	CreatedMs int64  `json:"createdMs"`
	Seed      uint64 `json:"seed"`
	// Isolation says how workspaces were made: export, worktree (leaky), or both; Sandbox is what
	// confined the agents.
	Isolation string `json:"isolation"`
	Sandbox   string `json:"sandbox"`
	// Network is what the agents reached: host, model, none, or several of them.
	Network string `json:"network,omitempty"`
	Tool    Tool   `json:"tool"`
	// Statement says in one sentence what the report claims.
	Statement string `json:"statement"`
	// Signed says what is signed of the results.
	Signed   *report.Signing `json:"signed,omitempty"`
	Agents   []Agent         `json:"agents"`
	Tasks    []Task          `json:"tasks"`
	Cells    []Cell          `json:"cells"`
	PerAgent []AgentSummary  `json:"perAgent"`
	Pairs    []Pair          `json:"pairs"`
	// Calibration is what people's labels say about the panel's errors, by dimension.
	Calibration []judge.Calibration `json:"calibration"`
	Panel       Panel               `json:"panel"`
	Weights     judge.Weights       `json:"weights"`
	// NotPlanned says what was asked for that no plan asks.
	NotPlanned []string `json:"notPlanned,omitempty"`
	Cost       Cost     `json:"cost"`
	Warnings   []string `json:"warnings"`
	// Controls say what the controls of the experiment showed.
	Controls []report.Control `json:"controls,omitempty"`
	// Validity is the page that says what a claim rests on.
	Validity string `json:"validity"`

	first []string // what is said right below the statement
}

// Tool is the program that made the records.
type Tool struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
}

// Agent is the agent behind the name of an arm, and how its process was started.
type Agent struct {
	ID      string `json:"id"`
	Arm     string `json:"arm"`
	Binary  string `json:"binary"`
	SHA256  string `json:"sha256"`
	Version string `json:"version"`
	// Argv is the command line of the first attempt.
	Argv     []string `json:"argv"`
	Model    string   `json:"model"`
	AuthMode string   `json:"authMode"`
}

// Task is one task of the comparison.
type Task struct {
	ID           string `json:"id"`
	SHA          string `json:"sha"`
	PromptSHA256 string `json:"promptSha256"`
	Cluster      string `json:"cluster"`
	Split        string `json:"split"`
}

// Cell is the attempt that counts of one task, arm and run. Runs count from 0, as in the ledger.
type Cell struct {
	Task   string          `json:"task"`
	Agent  string          `json:"agent"`
	Arm    string          `json:"arm"`
	Run    int             `json:"run"`
	Status evidence.Status `json:"status"`
	// Resolved is nil where there is no verdict: missing data.
	Resolved *bool `json:"resolved"`
	// Verdict is that of the ledger: pass, fail or error. FailedChecks are what a run failed, each
	// with what was expected and seen; Cause is why there is no verdict, with the way out.
	Verdict      string         `json:"verdict"`
	FailedChecks []failure.Row  `json:"failedChecks"`
	Cause        *failure.Cause `json:"cause,omitempty"`
	// AgentError is how the agent itself failed.
	AgentError string   `json:"agentError,omitempty"`
	CostUSD    *float64 `json:"costUsd"`
	// Directory is the attempt's, TracePath its trace, both relative to the run directory.
	Directory string `json:"directory"`
	TracePath string `json:"tracePath"`
	// Rubric holds what code alone measured, Judged the share of Pass votes, PerDimension both
	// together.
	Rubric       evidence.QualityRubric `json:"rubric"`
	Judged       judge.Scores           `json:"judged"`
	PerDimension judge.Scores           `json:"perDimension"`
	Blended      *float64               `json:"blended"`
	// Coverage is the part of the weights that is known.
	Coverage    float64                     `json:"coverage"`
	Usage       session.TokenUsage          `json:"usage"`
	WallClockMs int64                       `json:"wallClockMs"`
	Turns       int                         `json:"turns"`
	ExitCode    int                         `json:"exitCode"`
	Milestones  []session.Milestone         `json:"milestones"`
	Diff        Diff                        `json:"diff"`
	Errors      []evidence.ErrorAttribution `json:"errors"`
	Integrity   []session.IntegrityFlag     `json:"integrity"`
	Verdicts    []judge.PanelVerdict        `json:"verdicts"`
	// DroppedClaims counts the claims of judges whose citations are not valid.
	DroppedClaims int `json:"droppedClaims"`
	// Unseen are changed files of which the trace shows no edit.
	Unseen []string `json:"unseen"`
	// Treatment says what the model was given: which files of the project and of the arm, where in
	// the prompt, and what comes with the agent. It is nil in records of versions that did not
	// look.
	Treatment *ledger.Treatment `json:"treatment,omitempty"`
	// Problem says why there is no evidence; empty if there is.
	Problem string `json:"problem,omitempty"`

	unverified bool // the check of the task failed
	// undecided says that the panel left a dimension open; least and most are the blended scores
	// that the cell could have.
	undecided   bool
	least, most *float64
}

// Diff is the size of a change.
type Diff struct {
	Files   int `json:"files"`
	Added   int `json:"added"`
	Removed int `json:"removed"`
	// Generated counts files that a tool made, such as caches. They count in nothing else.
	Generated int `json:"generated,omitempty"`
}

// AgentSummary is one arm over all its runs.
type AgentSummary struct {
	Agent  string `json:"agent"`
	Arm    string `json:"arm"`
	NTasks int    `json:"nTasks"`
	NRuns  int    `json:"nRuns"` // with a verdict
	// Planned runs are those that should be there; ExcludedEnv had an environmental cause, Missing
	// have no verdict, those included.
	Planned      int `json:"planned"`
	Missing      int `json:"missing"`
	ExcludedEnv  int `json:"excludedEnv"`
	Disqualified int `json:"disqualified"`
	Timeouts     int `json:"timeouts"`
	// Retried runs were drawn again after an error in the middle of the agent's work; Limits counts
	// the runs that a limit ended.
	Retried int            `json:"retriedRuns"`
	Limits  map[string]int `json:"limits,omitempty"`
	// PassRate is nil without any verdict.
	PassRate *stats.Interval `json:"passRate"`
	Bounds   *report.Bounds  `json:"bounds,omitempty"`
	// Score is the mean over tasks where tasks have scores beside verdicts.
	Score    *stats.Interval      `json:"score,omitempty"`
	PassAtK  map[string]stats.AtK `json:"passAtK"`
	PassHatK map[string]stats.AtK `json:"passHatK"`
	// BoundsOf are what pass@k, pass^k and others would be for all outcomes of runs without one.
	BoundsOf map[string]report.Bounds `json:"boundsOf,omitempty"`
	// Corrected are the judged rates after correction for the panel's errors.
	Corrected []judge.BiasCorrection `json:"corrected"`
	// Blended is the mean over runs, in which disqualified ones count 0; Coverage is that of its
	// weights. BlendedBounds are what it would be for all possible scores of runs without one.
	Blended       *float64          `json:"blended"`
	BlendedBounds *report.Bounds    `json:"blendedBounds,omitempty"`
	Coverage      *float64          `json:"coverage"`
	Efficiency    AgentEfficiency   `json:"efficiency"`
	CostUSD       *float64          `json:"costUsd"` // of all attempts; nil where some are unknown
	Integrity     map[string]int    `json:"integrity"`
	Errors        map[string]int    `json:"errors"`
	Judging       map[string]Judged `json:"judging"`
	// DroppedClaims and UnseenEdits add up those of the cells.
	DroppedClaims int `json:"droppedClaims"`
	UnseenEdits   int `json:"unseenEdits"`
	// Differs says in what the arm differs from the first.
	Differs []string `json:"differs,omitempty"`
	// Treatment says what the models were given, Withheld why nothing is claimed about the arm.
	Treatment *report.Treatment `json:"treatment,omitempty"`
	Withheld  []report.Reason   `json:"withheld,omitempty"`
	Warnings  []string          `json:"warnings"`
}

// AgentEfficiency has the medians over the runs with a verdict; nil is not known.
type AgentEfficiency struct {
	WallClockMs      *float64 `json:"wallClockMs"`
	Turns            *float64 `json:"turns"`
	CostUSD          *float64 `json:"costUsd"`
	InputTokens      *float64 `json:"inputTokens"`
	OutputTokens     *float64 `json:"outputTokens"`
	CacheReadTokens  *float64 `json:"cacheReadTokens"`
	CacheWriteTokens *float64 `json:"cacheWriteTokens"`
	CacheHitRatio    *float64 `json:"cacheHitRatio"`
	EditsAttempted   *float64 `json:"editsAttempted"`
	EditsFailed      *float64 `json:"editsFailed"`
	ExplorationShare *float64 `json:"explorationShare"`
	FirstEditMs      *float64 `json:"firstEditMs"`
	GreenMs          *float64 `json:"greenMs"`
	// ToolCalls are means by what calls count as.
	ToolCalls map[string]float64 `json:"toolCalls"`
}

// Judged counts the panel's results in one dimension.
type Judged struct {
	Pass int `json:"pass"`
	Fail int `json:"fail"`
	// Undecided had votes but no majority, Abstained counts single votes without a verdict.
	Undecided int `json:"undecided"`
	Abstained int `json:"abstained"`
}

// Pair compares two arms. Differences are A minus B.
type Pair struct {
	A string `json:"a"`
	B string `json:"b"`
	// Diff is the difference of pass rates; nil where no task has verdicts on both.
	Diff   *Difference `json:"diff"`
	MDE    *float64    `json:"mde"`
	EValue *float64    `json:"eValue"`
	// Dimensions are the differences of the panel's verdicts.
	Dimensions []DimensionPair         `json:"dimensions"`
	Pairwise   []judge.PairwiseVerdict `json:"pairwise"`
	// FlipRate is the share of comparisons, decisive in both orders, that the order turned around;
	// nil without any.
	FlipRate *float64 `json:"flipRate"`
	Primacy  int      `json:"primacy"`
	Recency  int      `json:"recency"`
	// Claim is A>B, B>A, equivalent where a margin was planned, inconclusive or insufficient.
	Claim     string   `json:"claim"`
	Sentence  string   `json:"sentence"`
	Obstacles []string `json:"obstacles"`
	// Withheld are the reasons for which nothing is claimed, whatever the numbers say.
	Withheld []report.Reason `json:"withheld,omitempty"`
	// Observed says what the numbers are, if not an experiment: "not one experiment", "replayed".
	Observed string `json:"observed,omitempty"`
	// Remark says in what the answer is not the planned one about pass rates.
	Remark string `json:"remark,omitempty"`
	// Same is true where both arms are the same configuration: an A/A experiment.
	Same bool `json:"same,omitempty"`
	// Requests says in what the first requests of the two differ, as a rehearsal showed: Before is
	// B's, After is A's.
	Requests []report.RequestDifference `json:"requestDifferences,omitempty"`
	// Treatment says what the models of both arms were given.
	Treatment *report.Treatment `json:"treatment,omitempty"`
	// Cost, Time and Turns are ratios, A over B; they are shown and claim nothing.
	Cost  *report.Ratio `json:"cost"`
	Time  *report.Ratio `json:"time"`
	Turns *report.Ratio `json:"turns"`
	// Retries says how often each was drawn again; nil if no run was.
	Retries *report.Retries `json:"retries,omitempty"`
	// FailedCalls says in how many of their runs the provider failed model calls; nil if in none.
	FailedCalls *report.Retries `json:"failedCalls,omitempty"`
	// Machines says whether both ran on the same machine setup; nil where there was only one.
	Machines   *report.Machines          `json:"machines,omitempty"`
	Milestones []MilestoneGap            `json:"milestones"`
	Order      OrderGap                  `json:"order"`
	Prompts    evidence.PromptComparison `json:"prompts"`
}

// The claims of a pair.
const (
	claimA            = "A>B"
	claimB            = "B>A"
	claimEquivalent   = "equivalent"
	claimInconclusive = "inconclusive"
	claimInsufficient = "insufficient"
)

// Difference is a difference with its limits, its test, and the p-value corrected for all tests of
// the report.
type Difference struct {
	Est    float64  `json:"est"`
	Lo     *float64 `json:"lo"`
	Hi     *float64 `json:"hi"`
	P      float64  `json:"p"`
	PAdj   float64  `json:"pAdj"`
	Method string   `json:"method"`
	NTasks int      `json:"nTasks"`
}

// DimensionPair is the difference of two arms in one dimension.
type DimensionPair struct {
	Dimension string `json:"dimension"`
	NTasks    int    `json:"nTasks"` // in which both arms have an outcome
	// Observed is the difference of the panel's verdicts, with runs that fail without it. It claims
	// nothing: the panel's errors are in it.
	Observed Difference `json:"observed"`
	// Undecided counts planned runs of both arms without an outcome. A claim holds for all of
	// theirs.
	Undecided int `json:"undecided,omitempty"`
	// Corrected is the difference after correction for the panel's errors; nil where the panel is
	// not calibrated. PerAgent says that each arm has its own error rates.
	Corrected *Difference `json:"corrected"`
	PerAgent  bool        `json:"perAgent"`
	Status    string      `json:"status"`
	Claim     string      `json:"claim"`
	Obstacles []string    `json:"obstacles"`
	// Withheld are the reasons for which nothing is claimed, whatever the numbers say.
	Withheld []report.Reason `json:"withheld,omitempty"`

	basis report.Basis
	allow []string
}

// MilestoneGap says how much later A reached a milestone than B, over the runs of the same task and
// number. A milestone that was not reached is censored: it is counted and never taken for 0.
type MilestoneGap struct {
	Kind string `json:"kind"`
	Both int    `json:"both"` // pairs of runs in which both reached it
	// CensoredA and CensoredB count the pairs in which that arm did not reach it, or its trace does
	// not show when.
	CensoredA      int      `json:"censoredA"`
	CensoredB      int      `json:"censoredB"`
	DeltaElapsedMs *float64 `json:"deltaElapsedMs"` // medians
	DeltaTurn      *float64 `json:"deltaTurn"`
}

// OrderGap says how far the orders of milestones differ, by Kendall's distance.
type OrderGap struct {
	Discordant int `json:"discordant"`
	Pairs      int `json:"pairs"`
}

// Panel describes the judges.
type Panel struct {
	Models  []string             `json:"models"`
	Members []judge.MemberReport `json:"members"`
	// Choices are the members that judge a dimension, where labels decide that.
	Choices []judge.Choice `json:"choices"`
	// NEff is how many independent judges the members are worth by the errors they share on
	// labelled runs, the least over the dimensions; nil without labels.
	NEff             *float64 `json:"nEff"`
	ErrorCorrelation *float64 `json:"errorCorrelation"`
	Mode             string   `json:"mode"`
	Pairwise         string   `json:"pairwise"`
	SelfTest         bool     `json:"selfTest"`
	SameFamily       bool     `json:"sameFamily"`
	// Missing counts questions without a reply.
	Missing int `json:"missing"`
}

// Cost is the cost of the comparison.
type Cost struct {
	// AgentsUSD is nil where the cost of some attempt is unknown; AgentsKnownUSD is the rest.
	AgentsUSD      *float64 `json:"agentsUsd"`
	AgentsKnownUSD float64  `json:"agentsKnownUsd"`
	// JudgesUSD is nil where some reply has no price; JudgesKnownUSD is the rest.
	JudgesUSD      *float64 `json:"judgesUsd"`
	JudgesKnownUSD float64  `json:"judgesKnownUsd"`
	// JudgesShare is the judges' part relative to the agents'; nil where one of them is unknown.
	JudgesShare *float64 `json:"judgesShare"`
	Replies     int      `json:"replies"`
	PerReplyUSD *float64 `json:"perReplyUsd"`
	// PerMember and PerDimension split it up; the self-test is its own dimension.
	PerMember    map[string]judge.Cost `json:"perMember"`
	PerDimension map[string]judge.Cost `json:"perDimension"`
}
