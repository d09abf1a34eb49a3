package harness

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/profile"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/trace"
)

// sessionConfig is the common form of the modes' configs, which the loop understands.
type sessionConfig struct {
	mode         Mode
	lead         AgentConfig
	participants []AgentConfig
	sealLead     bool // the lead sees the directories of everybody, and can change nothing
	newAgent     AgentFunc
	output       io.Writer
	redactor     *redact.Redactor
	options      Options
	discuss      *discussConfig
}

// discussConfig holds the settings that only a discussion has.
type discussConfig struct {
	id     string
	sender ReplySender
	inbox  Inbox
	resume *ResumeContext
}

// The tools of each role where its config names none, and those it must not have.
var (
	supervisorTools   = []string{"Read", "Glob", "Grep", "Bash"}
	readingTools      = []string{"Read", "Glob", "Grep"}
	participantTools  = []string{"Bash", "Read", "Glob", "Grep", "Write", "Edit"}
	supervisorDenied  = []string{"Agent", "Task", "TaskOutput", "TaskStop", "Write", "Edit"}
	facilitatorDenied = append([]string{"Bash"}, supervisorDenied...)
	supervisedTools   = append([]string{"Agent", "TodoWrite"}, participantTools...)
)

// newSession checks a session's config, reads the profiles and wires everything up. Nothing has
// started when it returns.
func newSession(cfg sessionConfig) (*Session, error) {
	loop, err := cfg.loop()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.mode, err)
	}
	return &Session{loop: loop}, nil
}

func (cfg sessionConfig) loop() (*loop, error) {
	if cfg.newAgent == nil {
		return nil, errNoAgentFunc
	}
	if cfg.output == nil && cfg.options.Trace == nil {
		return nil, errors.New("no Output: the session has nowhere to write its trace")
	}
	lead, participants, err := cfg.members()
	if err != nil {
		return nil, err
	}
	members := append([]AgentConfig{lead}, participants...)
	s := newState(cfg.mode, members, lead.Name)
	cfg.redactor = redactorOr(cfg.redactor, cfg.options)
	writer := cfg.options.Trace
	if writer == nil {
		writer = trace.NewWriter(cfg.output, trace.Config{Redactor: cfg.redactor})
	}
	s.settings = cfg.options.settings()
	s.settings.ProfilesDir = cfg.profilesDir()
	return newLoop(cfg, s, writer), nil
}

// redactorOr returns the given redactor, or the one that the environment asks for: redaction is on
// unless it is turned off.
func redactorOr(given *redact.Redactor, options Options) *redact.Redactor {
	if given != nil {
		return given
	}
	environ := options.Base.Environ
	if environ == nil {
		environ = os.Environ()
	}
	return redact.New(redact.Config{Environ: environ, Warn: os.Stderr})
}

func (cfg *sessionConfig) profilesDir() string {
	return cmp.Or(cfg.options.ProfilesDir, filepath.Join(cfg.lead.Cwd, ".claude", "agents"))
}

// members completes the configs of the lead and the participants from their profiles and the
// defaults of their roles.
func (cfg *sessionConfig) members() (lead AgentConfig, participants []AgentConfig, err error) {
	if cfg.lead.Cwd, err = filepath.Abs(cmp.Or(cfg.lead.Cwd, ".")); err != nil {
		return lead, nil, fmt.Errorf("directory of the %s: %w", cfg.mode.traits().lead, err)
	}
	if lead, err = cfg.member(cfg.lead, true); err != nil {
		return lead, nil, err
	}
	for _, p := range cfg.participants {
		complete, err := cfg.member(p, false)
		if err != nil {
			return lead, nil, err
		}
		participants = append(participants, complete)
	}
	if cfg.mode == ModeFacilitate && len(participants) == 0 {
		return lead, nil, fmt.Errorf("a facilitated session needs at least one participant")
	}
	if cfg.mode == ModeJudge || worksInside(lead, participants) {
		lead.Context = agent.ContextNone
	}
	if cfg.sealLead {
		if lead.ReadOnly, err = directories(lead, participants); err != nil {
			return lead, nil, err
		}
	}
	return lead, participants, checkNames(participants)
}

// worksInside reports whether the directory of a lead and that of a participant lie in one another.
// Agents also load instructions of directories below their own, when they read files there.
func worksInside(lead AgentConfig, participants []AgentConfig) bool {
	return slices.ContainsFunc(participants, func(p AgentConfig) bool {
		return contains(lead.Cwd, p.Cwd) || contains(p.Cwd, lead.Cwd)
	})
}

// contains reports whether a directory is another, or lies in it.
func contains(outer, inner string) bool {
	within, err := filepath.Rel(realPath(outer), realPath(inner))
	return err != nil || filepath.IsLocal(within)
}

// realPath returns a path without symlinks, as far as it exists.
func realPath(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		path = full
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return path
}

// directories returns the directories that the members of a session work in, each once.
func directories(lead AgentConfig, participants []AgentConfig) ([]string, error) {
	var dirs []string
	for _, member := range append([]AgentConfig{lead}, participants...) {
		dir, err := filepath.Abs(member.Cwd)
		if err != nil {
			return nil, fmt.Errorf("directory of %s: %w", member.Name, err)
		}
		dirs = mergeWords(dirs, []string{dir})
	}
	return dirs, nil
}

func (cfg *sessionConfig) member(c AgentConfig, lead bool) (AgentConfig, error) {
	var p profile.Profile
	if c.AgentProfile != "" {
		var err error
		if p, err = profile.Load(cfg.profilesDir(), c.AgentProfile); err != nil {
			return c, err
		}
	}
	if lead {
		p.Name, p.Description = "", "" // a lead is called by its role
	}
	c = c.withProfile(p, cfg.lead.Cwd)
	c.Name = cmp.Or(c.Name, c.AgentProfile)
	c.Role = cmp.Or(c.Role, c.Name)
	c.Agent = cmp.Or(c.Agent, cfg.options.DefaultAgent)
	if !lead {
		c.Model = cmp.Or(c.Model, cfg.options.DefaultModel)
	}
	if c.Cwd == "" && !lead {
		c.Cwd = cfg.options.DefaultCwd
	}
	c.Cwd = cmp.Or(c.Cwd, cfg.lead.Cwd)
	c.Context = cmp.Or(c.Context, cfg.options.Base.Context, agent.ContextProject)
	c.applyRole(cfg.mode, lead, cfg.sealLead)
	amend := profile.Join(profile.SkillsText(c.Skills), c.Amend)
	if !lead && cfg.options.Advisor.Model != "" {
		amend = profile.Join(amend, advisorGuidance(cfg.options.settings().Advisor))
	}
	c.System = profile.Compose(p, profile.Text(roleText(cfg.mode, lead)), amend)
	c.System.Replace = lead && cfg.mode != ModeJudge
	return c, nil
}

// withProfile fills the empty fields of a member's config from its profile.
func (cfg AgentConfig) withProfile(p profile.Profile, leadCwd string) AgentConfig {
	cfg.Name = cmp.Or(cfg.Name, p.Name)
	cfg.Role = cmp.Or(cfg.Role, cmp.Or(p.Description, cfg.Name))
	cfg.Agent = cmp.Or(cfg.Agent, p.Agent)
	if p.Model != "inherit" {
		cfg.Model = cmp.Or(cfg.Model, p.Model)
	}
	if len(cfg.Tools) == 0 {
		cfg.Tools = p.Tools
	}
	if len(cfg.Skills) == 0 {
		cfg.Skills = p.Skills
	}
	cfg.MaxTurns = cmp.Or(cfg.MaxTurns, p.MaxTurns)
	if cfg.Cwd == "" && p.Cwd != "" {
		cfg.Cwd = p.Cwd
		if !filepath.IsAbs(cfg.Cwd) {
			cfg.Cwd = filepath.Join(leadCwd, cfg.Cwd)
		}
	}
	return cfg
}

// roleText returns the name of the text that explains a role to its member.
func roleText(mode Mode, lead bool) string {
	switch {
	case mode == ModeSupervise && lead:
		return "supervisor"
	case mode == ModeSupervise:
		return "supervised-agent"
	case mode == ModeFacilitate && lead:
		return "facilitator"
	case mode == ModeFacilitate:
		return "facilitated-agent"
	case mode == ModeDiscuss && lead:
		return "discuss-lead"
	case mode == ModeDiscuss:
		return "discuss-agent"
	default:
		return "judge"
	}
}

// applyRole sets the tools and turn limits that a role has unless its config says otherwise. A
// supervisor may run commands in a sandbox where they can change nothing.
func (c *AgentConfig) applyRole(mode Mode, lead, sealed bool) {
	var allowed, denied []string
	switch {
	case mode == ModeSupervise && lead && (sealed || slices.Contains(c.Tools, "Bash")):
		allowed, denied = supervisorTools, supervisorDenied
	case mode == ModeSupervise && lead:
		allowed, denied = readingTools, facilitatorDenied
	case mode == ModeSupervise:
		allowed = supervisedTools
	case mode == ModeJudge:
		allowed, denied = readingTools, judgeDenied
	case lead:
		allowed, denied = readingTools, facilitatorDenied
	default:
		allowed = participantTools
	}
	if len(c.Tools) == 0 {
		c.Tools, c.ToolsByRole = allowed, true
	}
	c.DisallowedTools = mergeWords(denied, c.DisallowedTools)
	c.MaxTurns = cmp.Or(c.MaxTurns, mode.DefaultTurns())
}

// mergeWords joins two lists without duplicates.
func mergeWords(a, b []string) []string {
	var merged []string
	for _, word := range slices.Concat(a, b) {
		if !slices.Contains(merged, word) {
			merged = append(merged, word)
		}
	}
	return merged
}
