package harness

import (
	"github.com/fit-eval/fit/internal/profile"
	"github.com/fit-eval/fit/session"
)

// RunProfile holds the settings that a profile and an advisor give the agent of a run.
type RunProfile struct {
	// Agent, Model, Tools, MaxTurns and Cwd come from the profile's front matter; zero where it
	// says nothing.
	Agent    string
	Model    string
	Tools    []string
	MaxTurns int
	Cwd      string
	// SystemPrompt is added to the agent's own, and Injections are its parts, for the trace.
	SystemPrompt string
	Injections   []session.SystemPromptInjection
}

// LoadRunProfile reads a profile for a run. An empty name is no profile; then only the advisor, if
// there is one, has something to add.
func LoadRunProfile(dir, name string, advisor AdvisorConfig) (RunProfile, error) {
	var p profile.Profile
	if name != "" {
		var err error
		if p, err = profile.Load(dir, name); err != nil {
			return RunProfile{}, err
		}
	}
	amend := profile.SkillsText(p.Skills)
	if advisor.Model != "" {
		amend = profile.Join(amend, advisorGuidance(Options{Advisor: advisor}.settings().Advisor))
	}
	prompt := profile.Compose(p, "", amend)
	run := RunProfile{
		Agent:        p.Agent,
		Tools:        p.Tools,
		MaxTurns:     p.MaxTurns,
		Cwd:          p.Cwd,
		SystemPrompt: prompt.Text,
	}
	if p.Model != "inherit" {
		run.Model = p.Model
	}
	for _, part := range []session.SystemPromptInjection{
		{Source: "profile", Label: name, Content: prompt.Profile},
		{Source: "session_protocol", Label: runLane, Content: prompt.Protocol},
	} {
		if part.Content != "" {
			run.Injections = append(run.Injections, part)
		}
	}
	return run, nil
}
