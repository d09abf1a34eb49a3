package ledger

import (
	"encoding/json"

	"github.com/fit-eval/fit/price"
)

// Version is the version of the record format. Fields may be added; none is renamed or removed.
const Version = 2

// The verdicts of an attempt.
const (
	Pass  = "pass"
	Fail  = "fail"
	Error = "error" // missing data, for causes outside the agent's reach
)

// The classes of errors. Only infrastructure errors are tried again.
const (
	ErrorSetup       = "setup"        // the working directory could not be made
	ErrorPreflight   = "preflight"    // the preflight hook failed on the untouched scaffold
	ErrorProvider    = "provider"     // the model provider failed
	ErrorAgentStart  = "agent_start"  // the agent never completed one turn of its model
	ErrorAgentKilled = "agent_killed" // something outside of it ended the agent's process
	ErrorAuth        = "auth"         // credentials
	ErrorGrader      = "grader"       // the grader is not healthy on the base snapshot either
	ErrorJudge       = "judge"        // the judge did not conclude
	ErrorInterrupted = "interrupted"  // the harness was stopped or killed
	ErrorBudget      = "budget"       // the budget of the experiment or of the arm was used up
	ErrorSandbox     = "sandbox"      // a sandbox, or a process in it, could not be started
	ErrorResources   = "resources"    // this machine lacks what a cell needs, such as disk space
	// ErrorNotDelivered is the class of runs whose model was not given what the arm brings.
	ErrorNotDelivered = "not_delivered"
	ErrorBypass       = "bypass"   // the agent has another way to its model than the gateway
	ErrorImported     = "imported" // another harness has recorded an error, or no outcome
	ErrorInternal     = "internal"
)

// The values of Record.ErrorCause.
const (
	CauseHealthcheck = "healthcheck"  // of the task's container failed
	CauseKilled      = "killed"       // something killed a grader or a program of it
	CauseTimeout     = "timeout"      // of the verifier
	CauseNoReward    = "no_reward"    // the verifier wrote none
	CauseEmptyReward = "empty_reward" // the verifier's file has nothing in it
	CauseBadReward   = "bad_reward"   // the verifier's file cannot be read
	CauseUnknown     = "unknown"      // nobody can know what a check asks; not tried again
	CauseNoRecording = "no_recording" // what is replayed has no record of the cell
	CauseNotRecorded = "not_recorded" // a strict replay has no answer to a request of the cell
	CauseNoPrice     = "no_price"     // a budget in dollars, and a model without a price
	CausePressure    = "pressure"     // the time ran out on an overloaded machine
)

// The values of Record.BudgetOf.
const (
	BudgetArm        = "arm"
	BudgetExperiment = "experiment"
)

// Key identifies an attempt within an experiment.
type Key struct {
	Arm      string `json:"arm"`
	TaskID   string `json:"taskId"`
	RunIndex int    `json:"runIndex"`
	Attempt  int    `json:"attempt"`
}

// Record is one attempt at one cell. The first block has the fields that reports have always had;
// the rest is additive.
type Record struct {
	TaskID   string `json:"taskId"`
	RunIndex int    `json:"runIndex"`
	Verdict  string `json:"verdict"`
	// effective: 0 when unhealthy, a gate failed or the judge said no
	Score               *float64       `json:"score,omitempty"`
	CostUSD             *float64       `json:"costUsd"` // nil is unknown
	CostBreakdown       *CostBreakdown `json:"costBreakdown,omitempty"`
	Turns               int            `json:"turns"`
	Profiles            Profiles       `json:"profiles"`
	Model               Models         `json:"model"`
	SkillSetHash        string         `json:"skillSetHash"`
	FamilyRevision      string         `json:"familyRevision"`
	DurationMs          int64          `json:"durationMs"`
	AgentTracePath      string         `json:"agentTracePath"` // relative to the run directory
	SupervisorTracePath string         `json:"supervisorTracePath"`
	JudgeTracePath      string         `json:"judgeTracePath"`
	Invariants          *Invariants    `json:"invariants,omitempty"`
	Grade               *Grade         `json:"grade,omitempty"`
	HiddenTests         *HiddenTests   `json:"hiddenTests,omitempty"`
	Verify              *Verify        `json:"verify,omitempty"` // the task's own command
	Lint                *Lint          `json:"lint,omitempty"`
	Submission          string         `json:"submission,omitempty"`
	JudgeVerdict        *JudgeMajority `json:"judgeVerdict,omitempty"`
	// what the verdict of the judge was made from, those that came to nothing included
	JudgeVotes     []JudgeVote     `json:"judgeVotes,omitempty"`
	AgentError     *AgentError     `json:"agentError,omitempty"`
	PreflightError *PreflightError `json:"preflightError,omitempty"`
	Version        int             `json:"version"`
	Experiment     string          `json:"experiment"`
	Arm            string          `json:"arm"`
	ArmHash        string          `json:"armHash"`
	Attempt        int             `json:"attempt"`
	Seed           uint64          `json:"seed"`
	// Alias is the name of the cell in everything that its agent, its hooks and its judge can see:
	// paths, addresses and prompts tell neither the arm nor the task.
	Alias        string `json:"alias,omitempty"`
	ErrorClass   string `json:"errorClass,omitempty"`
	ErrorMessage string `json:"errorMessage,omitempty"`
	ErrorCause   string `json:"errorCause,omitempty"` // for programs, where it is known
	// BudgetOf says whose budget was used up, where the class is budget: BudgetArm or
	// BudgetExperiment.
	BudgetOf string `json:"budgetOf,omitempty"`
	// the attempts at this cell so far that ended in an error which the agent may have brought
	// about: an error of the model's service that only its own process reported, after it could run
	// commands, or a grader that broke with its work one time and not the next
	Unverified int `json:"unverifiedErrors,omitempty"`
	// the agent was started, and only it knows how far its model has come
	Begun bool `json:"begun,omitempty"`
	// FailedCalls are model calls that failed at the provider and were repeated, by the agent or
	// by the next attempt: the answer was drawn anew.
	FailedCalls int              `json:"failedCalls,omitempty"`
	Final       bool             `json:"final"` // no further attempt at this cell will follow
	StartMs     int64            `json:"startMs"`
	EndMs       int64            `json:"endMs"`
	PhaseMs     map[string]int64 `json:"phaseMs,omitempty"` // setup, preflight, agent, grade, judge, teardown
	// HeldMs is how long the agent waited for calls that the gateway held back, because of a rate
	// limit or of the calls of other cells. It does not count against the agent's time.
	HeldMs int64 `json:"heldMs,omitempty"`
	// Concurrency is how many attempts ran on the machine at most while this one did, itself
	// included; 0 in records of versions that did not count.
	Concurrency int `json:"concurrency,omitempty"`
	// Pressure is the share of the agent's time, from 0 to 1, in which some program of the machine
	// waited for cpu, memory or io. It is empty where the kernel does not tell.
	Pressure     map[string]float64 `json:"pressure,omitempty"`
	Tokens       *UsageJSON         `json:"tokens,omitempty"`
	CostSource   string             `json:"costSource,omitempty"`
	Agent        string             `json:"agent"`
	AgentVersion string             `json:"agentVersion,omitempty"`
	AgentBinary  string             `json:"agentBinary,omitempty"` // empty: the agent is part of fit
	AgentSHA256  string             `json:"agentSha256,omitempty"` // of the program
	// AgentScripts are the digests of the scripts that the agent's entry in agents.yaml names, by
	// path.
	AgentScripts map[string]string `json:"agentScripts,omitempty"`
	// AgentArgv is the command line of the agent's process; {workspace} stands for the directory of
	// the attempt, {gateway} for the address of the gateway.
	AgentArgv     []string `json:"agentArgv,omitempty"`
	AuthMode      string   `json:"authMode,omitempty"` // how the agent was logged in: apikey, subscription
	Outcome       string   `json:"outcome,omitempty"`  // how the agent itself ended
	KeyVisible    bool     `json:"keyVisible"`
	Gateway       string   `json:"gateway,omitempty"`       // model calls went through the gateway: on or off
	GatewayReason string   `json:"gatewayReason,omitempty"` // why it is off
	// CallsPath is the record of the agent's model calls, relative to the run directory. Its digest
	// is among the artefacts.
	CallsPath string `json:"callsPath,omitempty"`
	// Faults is the digest of the plan of what went wrong with model calls on purpose.
	Faults string `json:"faults,omitempty"`
	// Replay is the run directory whose records answered model calls, and OriginalCostUSD what
	// these cost when they were recorded. ReplayedCalls counts them; nil in records of versions
	// that did not. ReplayDiffered counts those whose requests differ from the recorded ones in
	// what a model would read, and ReplayDifference shows the first of them.
	Replay           string   `json:"replay,omitempty"`
	OriginalCostUSD  *float64 `json:"originalCostUsd,omitempty"`
	ReplayedCalls    *int     `json:"replayedCalls,omitempty"`
	ReplayDiffered   int      `json:"replayDiffered,omitempty"`
	ReplayDifference string   `json:"replayDifference,omitempty"`
	// Treatment says what the model was given of what the arm and the task's files bring; nil in
	// records of versions that did not look.
	Treatment *Treatment `json:"treatment,omitempty"`
	Isolation string     `json:"isolation"`
	// Container is what the attempt ran in; nil: it needed none.
	Container     *Container `json:"container,omitempty"`
	Workspace     string     `json:"workspace,omitempty"` // export, or worktree, which shares the history
	AgentNetwork  bool       `json:"agentNetwork"`        // the agent had the host's network
	GraderNetwork bool       `json:"graderNetwork"`       // graders have the host's network
	// SharedProcess names the hidden tests that ran the agent's code in their own process, or
	// report where it can write, by their language or kind of task; empty: none did.
	SharedProcess string `json:"sharedProcess,omitempty"`
	// Network is what the agent reached: host, model (its model, its team's tools and the services
	// of its task), registries (these, and the package registries of its task) or none.
	Network string `json:"network,omitempty"`
	// where preflight's services are: private, with the graders, or host
	ServiceNetwork string            `json:"serviceNetwork,omitempty"`
	Digests        Digests           `json:"digests"`
	Tools          map[string]string `json:"tools,omitempty"` // versions: fit, git, …
	Host           string            `json:"host,omitempty"`
	Worker         string            `json:"worker,omitempty"` // of a fleet
	// SignedBy is the key of a fleet that signed the result, and Regraded the verdict that the
	// coordinator came to where it graded a pass again.
	SignedBy   string      `json:"signedBy,omitempty"`
	Regraded   string      `json:"regraded,omitempty"`
	Shard      string      `json:"shard,omitempty"`
	Cluster    string      `json:"cluster,omitempty"`
	Tags       []string    `json:"tags,omitempty"`
	Sequential *Sequential `json:"sequential,omitempty"` // set for a sequential analysis
	// processes that had to be killed before grading
	Survivors int    `json:"survivors"`
	DiffPath  string `json:"diffPath,omitempty"`
	// the files that the attempt left, by their content
	Artifacts []Artifact `json:"artifacts,omitempty"`
	RunDir    string     `json:"runDir"`
	// what deserves a look and changes nothing, such as a teardown that failed
	Notes []string `json:"notes,omitempty"`
	// what was wrong with the record as it was made; the fields in question were left out
	Invalid []string `json:"invalid,omitempty"`
	// Imported says which file of another harness the record was read from; nil: fit made it.
	Imported *Imported `json:"imported,omitempty"`
	// the hash of the record in the ledger that it was merged from
	Origin string `json:"origin,omitempty"`
	Prev   string `json:"prev"` // the hash of the record before
	Hash   string `json:"hash"` // of this record with an empty hash
}

// Imported is the file of another harness that records were read from. Fit did not run what they
// are about.
type Imported struct {
	Format string `json:"format"`
	File   string `json:"file"` // relative to what was named
	SHA256 string `json:"sha256"`
	// Fractional says that its outcomes are scores, not only pass or fail.
	Fractional bool `json:"fractional,omitempty"`
	// Conditions are those that both sides of a comparison should have in common, in words.
	Conditions string `json:"conditions,omitempty"`
	// Doubts say what is missing or not certain in the file.
	Doubts []string `json:"doubts,omitempty"`
	// Incomplete says why nobody knows which runs are missing, so that nothing can be claimed.
	Incomplete string `json:"incomplete,omitempty"`
}

// Key returns the record's key.
func (r *Record) Key() Key {
	return Key{
		Arm:      r.Arm,
		TaskID:   r.TaskID,
		RunIndex: r.RunIndex,
		Attempt:  r.Attempt,
	}
}

// Sequential marks the records of an experiment that stops as soon as it is decided. Comparing its
// arms needs a method that allows for interim looks. Every record says so, so that a ledger without
// its run directory does too.
type Sequential struct {
	Alpha float64 `json:"alpha"`
	// Position is the place of the task in the order that was fixed beforehand, and Tasks how many
	// there are; Runs are the runs of each arm that make a task complete.
	Position int `json:"position"`
	Tasks    int `json:"tasks"`
	Runs     int `json:"runs"`
	// Baseline and Candidate are the arms that are compared.
	Baseline  string `json:"baseline"`
	Candidate string `json:"candidate"`
}

// CostBreakdown splits the cost by role.
type CostBreakdown struct {
	Agent      float64 `json:"agent"`
	Supervisor float64 `json:"supervisor"`
	Judge      float64 `json:"judge"`
}

// Profiles are the names of the profiles used; nil is none.
type Profiles struct {
	Agent      *string `json:"agent"`
	Supervisor *string `json:"supervisor"`
	Judge      *string `json:"judge"`
}

// Models are the models used.
type Models struct {
	Agent      string `json:"agent"`
	Supervisor string `json:"supervisor,omitempty"`
	Judge      string `json:"judge,omitempty"`
}

// UsageJSON is a token usage in the spelling of the ledger.
type UsageJSON struct {
	InputTokens          int64    `json:"input"`
	OutputTokens         int64    `json:"output"`
	CacheReadTokens      int64    `json:"cacheRead"`
	CacheWriteTokens     int64    `json:"cacheWrite"`
	CacheWriteLongTokens int64    `json:"-"`
	ReasoningTokens      int64    `json:"-"`
	TotalTokens          int64    `json:"-"`
	CostUSD              *float64 `json:"-"`
	CostSource           string   `json:"-"`
	Partial              bool     `json:"-"`
	Summed               bool     `json:"-"`
}

// Total returns the sum of all tokens; it is 0 for nil.
func (u *UsageJSON) Total() int64 {
	if u == nil {
		return 0
	}
	return price.TokenUsage(*u).Total()
}

// Add adds other tokens; nil is none.
func (u *UsageJSON) Add(other *UsageJSON) {
	if other != nil {
		(*price.TokenUsage)(u).Add(price.TokenUsage(*other))
	}
}

// Digests are the hashes of what a task was made of.
type Digests struct {
	Visible string `json:"visible"`
	Hidden  string `json:"hidden"`
	Base    string `json:"base,omitempty"`  // the working directory before the agent
	Final   string `json:"final,omitempty"` // and after it
	Judge   string `json:"judge,omitempty"` // the judge: its agent, model, profile, template and number of votes
}

// Artifact is a file that an attempt left. Because the record is sealed, it vouches for the file.
type Artifact struct {
	Path   string `json:"path"` // relative to the run directory
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// Invariants is what the invariants hook said.
type Invariants struct {
	Details []json.RawMessage `json:"details"`
	// ExitCode is the hook's, 128 and the signal's number, or 124 when a bound of ours stopped it.
	ExitCode int    `json:"exitCode"`
	Stderr   string `json:"stderr,omitempty"`
}

// HiddenTests is what the hidden suite said.
type HiddenTests struct {
	Details []json.RawMessage `json:"details"`
	Error   string            `json:"error,omitempty"`
}

// Rows returns what the graders wrote, row by row: the invariants hook, then the hidden suite.
func (r *Record) Rows() []json.RawMessage {
	rows := []json.RawMessage{}
	if r.Invariants != nil {
		rows = append(rows, r.Invariants.Details...)
	}
	if r.HiddenTests != nil {
		rows = append(rows, r.HiddenTests.Details...)
	}
	return rows
}

// Verify is what the task's own command said about what the agent left, run by the harness on a
// copy with the protected files restored.
type Verify struct {
	Passed   bool  `json:"passed"`
	ExitCode int   `json:"exitCode"`
	TimedOut bool  `json:"timedOut,omitempty"`
	StartMs  int64 `json:"startMs"`
	EndMs    int64 `json:"endMs"`
	// Error is why the command could not be started; then nothing was measured.
	Error string `json:"error,omitempty"`
	// OutputPath is the file with what it printed, relative to the run directory.
	OutputPath string `json:"outputPath,omitempty"`
}

// Lint is what the task's linter said about the changed files.
type Lint struct {
	ExitCode int `json:"exitCode"`
	// Before and After are the numbers of violations in the changed files, at the base and as the
	// agent left them.
	Before int `json:"before"`
	After  int `json:"after"`
	// Error is why the linter could not be started; then nothing was measured.
	Error string `json:"error,omitempty"`
}

// Grade is what the rows come to.
type Grade struct {
	Verdict   string   `json:"verdict"`
	GatesPass bool     `json:"gatesPass"`
	Score     *float64 `json:"score,omitempty"` // raw
	Malformed int      `json:"malformed,omitempty"`
	Healthy   bool     `json:"healthy"`
	Reason    string   `json:"reason,omitempty"`
}

// JudgeMajority is what the majority of the votes of a judge concluded.
type JudgeMajority struct {
	Verdict string `json:"verdict"`
	Summary string `json:"summary"`
}

// JudgeVote is one of the votes that the judge's verdict is made from.
type JudgeVote struct {
	Verdict    string     `json:"verdict"` // Error: it did not conclude
	Summary    string     `json:"summary,omitempty"`
	Error      string     `json:"error,omitempty"`
	CostUSD    *float64   `json:"costUsd"` // nil is unknown
	Tokens     *UsageJSON `json:"tokens,omitempty"`
	DurationMs int64      `json:"durationMs"`
	TracePath  string     `json:"tracePath,omitempty"` // relative to the run directory
}

// AgentError is what went wrong inside the agent's session.
type AgentError struct {
	Message string `json:"message"`
	Aborted bool   `json:"aborted"`
}

// PreflightError is what the preflight hook complained about.
type PreflightError struct {
	Phase    string `json:"phase"`
	Message  string `json:"message"`
	ExitCode int    `json:"exitCode"`
}

// Container is the container that an attempt ran in.
type Container struct {
	Engine  string `json:"engine"`  // podman or docker
	Version string `json:"version"` // of the engine
	Image   string `json:"image"`
	ID      string `json:"id"`               // digest of the image's configuration
	Digest  string `json:"digest,omitempty"` // of the image's manifest, where it has one
}
