package acp

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/model"
)

// Entry is one agent that speaks the protocol: a row of the table, or an entry of agents.yaml.
//
// Arguments, variables, files and the mode are templates of package text/template. They have URL
// (the model's endpoint without /v1, empty for the vendor's own), Key, Model, Protocol (the model
// protocol to speak, such as chat or anthropic), Home (the session's home), Dir (the
// workspace), SystemPrompt, MCPServers (of which .MCPServers.File "http" is a settings file),
// Restricted (whether tools are to be asked for, because some are not allowed), Retries (how often
// a failed model call is tried again), Project (whether the agent reads the texts of its project),
// Programs (whether it runs the project's programs), and the function json; there is no define,
// block or template. Arguments, variables and files that turn out empty are left out.
type Entry struct {
	Kind    string   `yaml:"kind" enum:"acp" doc:"Kind of the agent."`
	ID      string   `yaml:"id" required:"true" pattern:"^[a-z][a-z0-9-]*$" doc:"Name of the agent."`
	Title   string   `yaml:"title" doc:"Name of the agent, for people."`
	Command string   `yaml:"command" required:"true" doc:"Program to start: a name that is looked up in PATH, or a path."`
	Args    []string `yaml:"args" doc:"Arguments of the program; templates."`

	Env   map[string]string `yaml:"env" doc:"Variables of the program's environment; the values are templates."`
	Files map[string]string `yaml:"files" doc:"Files in the session's home, by path; the contents are templates."`

	Keys      []string        `yaml:"keys" pattern:"^[A-Za-z_][A-Za-z0-9_]*$" doc:"Variables of your environment that may hold the key of the model; the first that is set is used."`
	Protocols agent.Protocols `yaml:"protocols" doc:"Model protocols that the agent speaks; the first is for models of no known family."`

	Install string `yaml:"install" doc:"Command that installs the agent."`
	Login   string `yaml:"login" doc:"How to give it credentials, for people."`

	Authenticate string `yaml:"authenticate" doc:"Authentication method to call after initialize."`
	Mode         string `yaml:"mode" doc:"Session mode to set; a template."`
	SetModel     string `yaml:"setModel" enum:"option,method" doc:"How the model is chosen in a session: by the option \"model\", or by session/set_model. Without it and without {{.Model}} in a template, whichever the agent offers is used."`
	Resume       string `yaml:"resume" enum:"load,resume" doc:"Method that continues a conversation in a new process; without it resuming is refused."`

	AsksForAll bool `yaml:"asksForAll" doc:"The agent asks for permission before every tool where Restricted is true, so that lists of tools can be enforced."`
	ServeFiles bool `yaml:"serveFiles" doc:"Serve the client's file methods, within the workspace, to an agent that cannot do without them."`

	Places agent.Places `yaml:"places" doc:"Where the agent reads what a project brings it, such as skills; without it, skills are refused."`

	// Silence limits how long an agent may wait for its model silently.
	Silence string `yaml:"silence" doc:"How long the agent may say nothing while it waits for its model, as in 90s; default 5m."`

	Usage    string   `yaml:"usage" enum:"none,turn,session,last-call,per-call,quota" doc:"What the token counts mean: see docs/agents.md; default none."`
	ToolName string   `yaml:"toolName" enum:"title,title-prefix,id-prefix" doc:"Where a tool's own name stands, for agents that do not send it as such."`
	Errors   []string `yaml:"errors" doc:"Beginnings of a last message that mean that the model could not be reached, although the turn is said to have ended well."`
	Notices  []string `yaml:"notices" doc:"Beginnings of messages that the agent itself says, not the model."`

	// Oldest is the first version, major and minor, that works. Without it the program is not asked
	// for its version: it may be any script, and looking for agents must not run it.
	Oldest [2]int `yaml:"-"`
	// Names are the agent's names for itself, which identify its recordings.
	Names []string `yaml:"-"`

	// Pins are variables that a .env of the project would set, with the values that they have
	// instead where they are not set.
	Pins map[string]string `yaml:"-"`
	// StartsAtHome starts the agent in the session's home: it reads the .env of the directory that
	// it starts in.
	StartsAtHome bool `yaml:"-"`
	// Links are places in the session's home by the places of the project that they show, for
	// agents that read more than their project there.
	Links []link `yaml:"-"`
	// Insists are places that the agent reads, and programs that it runs, whatever it is told.
	Insists agent.Places `yaml:"-"`
	// Decides are settings of the project that the agent prefers to all others, with the keys that
	// a project must not decide.
	Decides []agent.ProjectProgram `yaml:"-"`
	// KeepsOut says that the agent keeps away from all of a project with context none.
	KeepsOut bool `yaml:"-"`
	// Distrusts says that the agent keeps away from all of a project that it was told to distrust,
	// but also from tool servers. Then Distrusted is true in templates.
	Distrusts bool `yaml:"-"`
	// Above are files that the agent reads in the directories above the project, up to the root of
	// a repository.
	Above []agent.ProjectProgram `yaml:"-"`
	// Tools are the agent's own tools with their purposes, where lists of tools decide what it
	// offers its model.
	Tools map[string]string `yaml:"-"`
	// Together are tools that the agent has all of, or none.
	Together []string `yaml:"-"`
}

// The meanings of token counts.
const (
	usageNone     = "none"      // there are none
	usageTurn     = "turn"      // of the turn, input without what came from the cache
	usageSession  = "session"   // of the process so far, input with what came from the cache
	usageLastCall = "last-call" // of the turn's last model call only
	usagePerCall  = "per-call"  // in the message after each call, input with what came from the cache
	usageQuota    = "quota"     // of the turn in _meta.quota, input with the cache, output without thoughts
)

// The ways to choose a model and to resume.
const (
	setByOption = "option"
	setByMethod = "method"
	byLoad      = "load"
	byResume    = "resume"
)

const defaultSilence = 5 * time.Minute

// adHoc returns the entry of an unknown command line. It gets the model's endpoint and key in the
// variables that most agents read.
func adHoc(id string, words []string) Entry {
	env := map[string]string{}
	for _, setting := range model.Settings("{{.URL}}", "{{if .URL}}{{.Key}}{{end}}") {
		name, value, _ := strings.Cut(setting, "=")
		env[name] = value
	}
	env["OPENAI_BASE_URL"] = "{{if .URL}}{{.URL}}/v1{{end}}"
	return Entry{
		ID:        id,
		Command:   words[0],
		Args:      literal(words[1:]),
		Install:   "put " + words[0] + " into PATH",
		Keys:      first("OPENAI_API_KEY", model.KeyVariables()),
		Protocols: first(agent.ProtocolChat, model.ProtocolNames()),
		Env:       env,
	}
}

// first moves a name to the beginning of a list.
func first(name string, list []string) []string {
	rest := slices.DeleteFunc(list, func(other string) bool { return other == name })
	return append([]string{name}, rest...)
}

// literal escapes words that are not templates.
func literal(words []string) []string {
	escaped := make([]string, len(words))
	for i, word := range words {
		escaped[i] = strings.ReplaceAll(word, "{{", `{{"{{"}}`)
	}
	return escaped
}

func (e Entry) title() string {
	return cmp.Or(e.Title, e.ID)
}

// installHint is never empty: an agent without one would count as part of this binary.
func (e Entry) installHint() string {
	return cmp.Or(e.Install, "put "+e.Command+" into PATH")
}

func (e Entry) silence() time.Duration {
	if bound, err := time.ParseDuration(e.Silence); err == nil && bound > 0 {
		return bound
	}
	return defaultSilence
}

// Validate returns an error if an entry is not valid.
func (e Entry) Validate() error {
	if e.ID == "" || e.Command == "" {
		return errors.New("an agent of kind acp needs an id and a command")
	}
	for _, choice := range []struct {
		field, value string
		allowed      []string
	}{
		{"usage", e.Usage, []string{
			usageNone, usageTurn, usageSession, usageLastCall, usagePerCall, usageQuota,
		}},
		{"setModel", e.SetModel, []string{setByOption, setByMethod}},
		{"resume", e.Resume, []string{byLoad, byResume}},
		{"toolName", e.ToolName, []string{nameIsTitle, nameStartsTitle, nameStartsID}},
	} {
		if choice.value != "" && !slices.Contains(choice.allowed, choice.value) {
			return fmt.Errorf("%s: %q is not allowed; write %s", choice.field, choice.value,
				strings.Join(choice.allowed, ", "))
		}
	}
	if bound, err := time.ParseDuration(e.Silence); e.Silence != "" && (err != nil || bound <= 0) {
		return fmt.Errorf("silence: %q is not allowed; write a duration, as in 90s", e.Silence)
	}
	for path := range e.Files {
		if !filepath.IsLocal(path) {
			return fmt.Errorf("files: %q is not a path below the session's home", path)
		}
	}
	for name := range e.Env {
		if err := agent.CheckVariable(name); err != nil {
			return err
		}
	}
	if err := e.Places.Validate(); err != nil {
		return err
	}
	for field, text := range e.templates() {
		if err := checkTemplate(text); err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
	}
	return nil
}

// wordForm matches the placeholders of other kinds of agents.
var wordForm = lazyregexp.New(`(?:^|[^{])(\{[a-z_]+\})(?:[^}]|$)`)

// checkTemplate returns an error if a template is not valid, worded for people who do not know Go.
func checkTemplate(text string) error {
	if found := wordForm.FindStringSubmatch(text); found != nil {
		return fmt.Errorf("%s is not a known placeholder; use one of %s", found[1], templateWords)
	}
	if _, err := render(text, values{}); err != nil {
		return fmt.Errorf("%q cannot be filled in; use %s, {{json .Model}} and {{if .Model}}…{{end}}", text,
			templateWords)
	}
	return nil
}

// templateWords are the values that templates can have.
const templateWords = "{{.URL}}, {{.Key}}, {{.Model}}, {{.Protocol}}, {{.Home}}, {{.Dir}}, {{.SystemPrompt}}, " +
	"{{.MCPServers}}, {{.Restricted}}, {{.Retries}}, {{.Project}}, {{.Programs}}"

// templates yields every template of an entry, and its field.
func (e Entry) templates() func(yield func(field, text string) bool) {
	return func(yield func(field, text string) bool) {
		for _, text := range e.Args {
			if !yield("args", text) {
				return
			}
		}
		for _, group := range []struct {
			field string
			texts map[string]string
		}{{"env.", e.Env}, {"files: ", e.Files}} {
			for name, text := range group.texts {
				if !yield(group.field+name, text) {
					return
				}
			}
		}
		yield("mode", e.Mode)
	}
}

// mentions reports whether some template uses a value.
func (e Entry) mentions(name string) bool {
	for _, text := range e.templates() {
		if strings.Contains(text, "."+name) {
			return true
		}
	}
	return false
}

// values are the values that templates can use.
type values struct {
	URL, Key, Model, Protocol string
	Home, Dir, Parent         string
	SystemPrompt              string
	MCPServers                toolServers
	Restricted                bool
	Retries                   int
	Proxy                     string // the caller's, or a space
	Project, Programs         bool
	Distrusted                bool
	Denied                    []string // of the entry's own tools
}
