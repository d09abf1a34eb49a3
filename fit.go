// Package fit proves whether a change to an agent made it better, from a Go program. An
// [Experiment] runs every task with every arm, grades the outcome with checks the agent cannot
// touch, and answers improved, regressed or not proven, with a confidence interval and the cost:
//
//	result, err := fit.Experiment(ctx, fit.ExperimentConfig{
//		Family: "examples/quick-node",
//		Arms: []fit.Arm{
//			{Name: "before", Agent: "builtin"},
//			{Name: "after", Agent: "builtin", Skills: "examples/skills/edge-cases"},
//		},
//		Runs:   3,
//		Output: "results",
//	})
//	if err != nil {
//		return err
//	}
//	err = result.Comparison.Text(os.Stdout)
//
// [Compare] answers the same from run directories that exist, and [ReadReport] reads the evidence
// of every run. The package also runs agents alone and in teams, wired as the commands of
// fit-harness are: every agent that fit knows can be named, agents reach the session's tools, the
// trace is redacted, and keys come from the environment of the process.
//
//	facilitator, err := fit.NewFacilitator(fit.FacilitatorConfig{
//		AgentConfigs: []fit.AgentConfig{
//			{Name: "alice", Role: "explorer", AgentProfile: "alice"},
//			{Name: "bob", Role: "tester", AgentProfile: "bob"},
//		},
//		FacilitatorProfile: "improvement-coach",
//		Output:             os.Stdout,
//	})
//	if err != nil {
//		return err
//	}
//	result, err := facilitator.Run(ctx, "Run a kata storyboard meeting.")
//
// # Modes
//
// [Run] gives one agent one task. [Supervise] lets a supervisor lead one agent, [Facilitate] lets a
// facilitator lead several, [Discuss] drives a discussion that people can follow, and [Judge]
// judges finished work. [NewSupervisor], [NewFacilitator], [NewDiscusser] and [NewJudge] do the
// same in two steps: they check the config and return a [Team], whose Run method holds the session.
//
// # What a config needs
//
// Zero values work. A config needs a place for its trace (Output, or Options.Trace), and a
// facilitated session needs participants. The agent is the first one installed, the directory
// is the current one, and credentials are those that the agent finds in the environment. A
// [ConfigError] names the field that is missing or wrong.
//
// A profile defines a participant: NAME.md in the directory .claude/agents below the lead's
// directory, with front matter for the agent, the model and the tools, and the instructions as
// text.
//
// # What a session leaves
//
// The trace has one line of JSON per event, and a summary as its last line. Package session reads
// it, and so does the command fit-trace. The [Result] says how the session ended; the error is for
// sessions that could not start, could not be recorded, or in which an agent could not do its part.
//
// A program that does not want the environment of its process sets the fields of a [Wiring] and
// calls the method of the same name. What it can plug in is there as well: an [Agent] of its own, a
// [ProcessSpawner], an [MCPServer], and a scripted model ([ServeScript]). The directory
// examples/library has a program for each.
//
// # Compatibility
//
// The module is at v0: names may change between minor versions, and the changelog says so. The
// formats of traces, ledgers and run directories carry versions of their own and stay readable.
package fit

import (
	"context"
	"fmt"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/redact"
)

// The types of configs and results are those of package harness, whose documentation describes each
// field. Here every field but those named in the package comment may be left out.
type (
	// AgentConfig is one member of a session: a participant, or the lead.
	AgentConfig = harness.AgentConfig
	// Options holds the settings that all modes have in common: limits, homes, defaults, retries.
	Options = harness.Options
	// Limits bound a session or one participant in time, turns, tokens and dollars.
	Limits = harness.Limits
	// AdvisorConfig gives participants a stronger model to ask.
	AdvisorConfig = harness.AdvisorConfig
	// MCPServer is a tool server to attach to an agent.
	MCPServer = agent.MCPServer

	// SupervisorConfig is a session in which a supervisor leads one agent.
	SupervisorConfig = harness.SupervisorConfig
	// FacilitatorConfig is a session in which a facilitator leads several participants.
	FacilitatorConfig = harness.FacilitatorConfig
	// DiscusserConfig is a discussion with a lead, participants, and people who follow in a thread.
	DiscusserConfig = harness.DiscusserConfig
	// JudgeConfig is one judgement of finished work.
	JudgeConfig = harness.JudgeConfig

	// Result is how a session ended: verdict, summary, turns and cost.
	Result = harness.Result
	// RunResult is how the run of one agent ended.
	RunResult = harness.RunResult
)

// What an agent reads of the project that it works in: the values of RunConfig.Context,
// AgentConfig.Context and Options.Base.Context.
const (
	ContextProject = agent.ContextProject
	ContextNone    = agent.ContextNone
)

// Contexts are the values of a context, the default first.
var Contexts = []string{ContextProject, ContextNone}

// ConfigError reports a field of a config that is missing or wrong.
type ConfigError struct {
	Field string // as in FacilitatorConfig.Output
	Err   error
}

func (e *ConfigError) Error() string { return fmt.Sprintf("%s: %v", e.Field, e.Err) }

// Unwrap returns the reason.
func (e *ConfigError) Unwrap() error { return e.Err }

// Run gives one agent one task and writes the trace of it.
func Run(ctx context.Context, cfg RunConfig) (RunResult, error) { return Wiring{}.Run(ctx, cfg) }

// Supervise holds a session in which a supervisor leads one agent.
func Supervise(ctx context.Context, cfg SupervisorConfig, task string) (Result, error) {
	return runTeam(ctx, task)(NewSupervisor(cfg))
}

// Facilitate holds a session in which a facilitator leads several participants.
func Facilitate(ctx context.Context, cfg FacilitatorConfig, task string) (Result, error) {
	return runTeam(ctx, task)(NewFacilitator(cfg))
}

// Discuss leads a discussion until it is adjourned, recessed, or ended otherwise.
func Discuss(ctx context.Context, cfg DiscusserConfig, task string) (Result, error) {
	return runTeam(ctx, task)(NewDiscusser(cfg))
}

// Judge judges finished work. The verdict is empty if the judge did not conclude.
func Judge(ctx context.Context, cfg JudgeConfig, task string) (Result, error) {
	return runTeam(ctx, task)(NewJudge(cfg))
}

func runTeam(ctx context.Context, task string) func(*Team, error) (Result, error) {
	return func(team *Team, err error) (Result, error) {
		if err != nil {
			return Result{}, err
		}
		return team.Run(ctx, task)
	}
}

// NewSupervisor checks the config of a supervised session and reads its profiles.
func NewSupervisor(cfg SupervisorConfig) (*Team, error) { return Wiring{}.NewSupervisor(cfg) }

// NewFacilitator checks the config of a facilitated session and reads its profiles.
func NewFacilitator(cfg FacilitatorConfig) (*Team, error) { return Wiring{}.NewFacilitator(cfg) }

// NewDiscusser checks the config of a discussion and reads its profiles.
func NewDiscusser(cfg DiscusserConfig) (*Team, error) { return Wiring{}.NewDiscusser(cfg) }

// NewJudge checks the config of a judgement and reads its profile.
func NewJudge(cfg JudgeConfig) (*Team, error) { return Wiring{}.NewJudge(cfg) }

// NewRedactor returns the redactor that a config gets when it has none: it removes the values of
// the environment variables that usually hold credentials, the keys and logins of all agents, and
// anything shaped like a credential.
func NewRedactor() *redact.Redactor { return Wiring{}.NewRedactor() }
