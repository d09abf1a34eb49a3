package experiment

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/tree"
)

// Arm is a complete agent configuration. "Agent A against agent B" and "skill v1 against skill v2"
// are the same question: two arms.
type Arm struct {
	Name         string            `json:"name" yaml:"name" doc:"what the arm is called in reports" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" required:"true"`
	Agent        string            `json:"agent,omitempty" yaml:"agent" doc:"registered agent; empty is the first one installed"`
	Model        string            `json:"model,omitempty" yaml:"model" doc:"model of the agent; empty is the agent's own"`
	ModelURL     string            `json:"modelUrl,omitempty" yaml:"modelUrl" doc:"model endpoint, without /v1; {cell} and {seed} are filled in"`
	Profile      string            `json:"profile,omitempty" yaml:"profile" doc:"profile of the agent: .claude/agents/NAME.md in its working directory"`
	Skills       string            `json:"skills,omitempty" yaml:"skills" doc:"directory of a skill, directory of skills, or one with .claude/skills or .agents/skills, in place of the family's; several with +"`
	Context      string            `json:"context,omitempty" yaml:"context" doc:"what the agent reads of its project: instruction files, skills, sub-agents and commands, or nothing by itself; default: what the task says, else project" enum:"project,none"`
	Instructions string            `json:"instructions,omitempty" yaml:"instructions" doc:"file that replaces the instruction files of the project, under the name that the agent reads"`
	Files        string            `json:"files,omitempty" yaml:"files" doc:"directory that is laid over the working directory"`
	MCP          string            `json:"mcp,omitempty" yaml:"mcp" doc:"file with tool servers of the agent, in the form of .mcp.json"`
	Settings     string            `json:"settings,omitempty" yaml:"settings" doc:"settings file in the agent's own format"`
	Effort       string            `json:"effort,omitempty" yaml:"effort" doc:"how long the model thinks, in the agent's own words"`
	Temperature  *float64          `json:"temperature,omitempty" yaml:"temperature" doc:"temperature of the model's sampling"`
	Prompt       string            `json:"prompt,omitempty" yaml:"prompt" doc:"text that is appended to the system prompt"`
	AllowedTools []string          `json:"allowedTools,omitempty" yaml:"allowedTools" doc:"the only tools the agent may use"`
	Env          map[string]string `json:"env,omitempty" yaml:"env" doc:"variables of the agent's environment"`
	MaxTurns     int               `json:"maxTurns,omitempty" yaml:"maxTurns" doc:"turns of the model; 0 is unlimited" min:"0"`
	Auth         string            `json:"auth,omitempty" yaml:"auth" doc:"which credentials to use if the agent accepts both" enum:"subscription,apikey"`
	Lead         string            `json:"lead,omitempty" yaml:"lead" doc:"agent of a supervising lead; empty: the agent gets the task word for word"`
	LeadModel    string            `json:"leadModel,omitempty" yaml:"leadModel" doc:"model of the lead"`
	Needs        []string          `json:"needs,omitempty" yaml:"needs" doc:"labels that a worker of a fleet must have to run the arm"`
	// of everything above, and of the content of what the paths above name
	Hash string `json:"hash" yaml:"-"`
}

// armNameForm matches valid names of arms, which are in file names and reports; the length is
// checked beside it, because counted repetitions are slow to compile, at every start.
var armNameForm = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

func validArmName(name string) bool { return len(name) <= 64 && armNameForm.MatchString(name) }

// CheckArms finds mistakes that a schema cannot.
func CheckArms(arms []Arm) error {
	if len(arms) == 0 {
		return errors.New("an experiment needs at least one arm")
	}
	var problems []error
	seen := map[string]bool{}
	for _, arm := range arms {
		switch {
		case !validArmName(arm.Name):
			problems = append(problems, fmt.Errorf("arm name %q: use letters, digits, dots, dashes and underscores, "+
				"at most 64", arm.Name))
		case seen[arm.Name]:
			problems = append(problems, fmt.Errorf("two arms are called %q; give each a name of its own", arm.Name))
		}
		if arm.LeadModel != "" && arm.Lead == "" {
			problems = append(problems, fmt.Errorf("arm %q has a leadModel but no lead", arm.Name))
		}
		if err := arm.CheckContext(); err != nil {
			problems = append(problems, fmt.Errorf("arm %q: %w", arm.Name, err))
		}
		seen[arm.Name] = true
	}
	return errors.Join(problems...)
}

// What the agent of an arm reads of its project, in the words of package agent. contextTask is as
// each task says, where tasks differ.
const (
	contextProject = "project"
	contextNone    = "none"
	contextTask    = "task"
)

// CheckContext refuses what an arm brings to an agent that reads nothing of its project.
func (a *Arm) CheckContext() error {
	if a.Context != contextNone && a.Context != contextTask {
		return nil
	}
	for _, brings := range []struct{ key, value string }{
		{"skills", a.Skills},
		{"instructions", a.Instructions},
		{"files", a.Files},
		{"mcp", a.MCP},
		{"settings", a.Settings},
	} {
		switch {
		case brings.value == "":
		case a.Context == contextTask:
			return fmt.Errorf("it has %s, which reach no agent at the tasks with context: none; give it "+
				"context:project", brings.key)
		default:
			return fmt.Errorf("it has %s, which reach no agent with context: none; give it context:project, or "+
				"pass the text as its prompt", brings.key)
		}
	}
	return nil
}

// ContextFor returns what the agent reads of its project at a task.
func (a *Arm) ContextFor(t *task.Task) string {
	if a.Context == contextProject || a.Context == contextNone {
		return a.Context
	}
	return cmp.Or(t.Settings.Context, contextProject)
}

// SettleContext says what the agent of an arm that says nothing reads: what all tasks say, or what
// each of them says.
func (a *Arm) SettleContext(tasks []task.Task) {
	if a.Context != "" {
		return
	}
	for i := range tasks {
		context := a.ContextFor(&tasks[i])
		if i > 0 && context != a.ContextFor(&tasks[0]) {
			a.Context = contextTask
			return
		}
	}
	a.Context = contextProject
	if len(tasks) > 0 {
		a.Context = cmp.Or(tasks[0].Settings.Context, contextProject)
	}
}

// withoutSecrets returns the arm as the plan keeps it: values of variables are replaced with a
// hash.
func (a Arm) withoutSecrets() Arm {
	if len(a.Env) > 0 {
		hidden := make(map[string]string, len(a.Env))
		for name, value := range a.Env {
			sum := sha256.Sum256([]byte(name + "\x00" + value))
			hidden[name] = "sha256:" + hex.EncodeToString(sum[:6])
		}
		a.Env = hidden
	}
	return a
}

// TreeDigest hashes a directory: names, contents, links as they are, and whether files are
// executable.
func TreeDigest(dir string) (string, error) { return treeDigest(dir, "") }

// treeDigest is TreeDigest without one entry of the directory; empty: with all.
func treeDigest(dir, without string) (string, error) {
	entries, err := tree.Walk{Skip: func(name string) bool { return name == without }}.Hash(dir)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	for _, e := range entries {
		kind := "file"
		switch {
		case e.IsDir():
			continue
		case e.IsSpecial():
			return "", fmt.Errorf("%s is not a regular file", filepath.Join(dir, filepath.FromSlash(e.Path)))
		case e.IsLink():
			kind, e.Sum = "link", fmt.Sprintf("%x", sha256.Sum256([]byte(e.Target)))
		case e.IsProgram():
			kind = "program"
		}
		fmt.Fprintf(hash, "%s\x00%s\x00%s\n", e.Path, kind, e.Sum)
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil)), nil
}

// ModelURL fills the placeholders of a model URL with the cell's alias and seed, so that a scripted
// model can draw for each cell by itself.
func (c Cell) ModelURL(url string) string {
	return strings.NewReplacer("{cell}", c.Alias(), "{seed}", strconv.FormatUint(c.Seed, 10)).Replace(url)
}

// ForVote returns the cell as model URLs name it for a vote of the judge: a scripted judge draws
// for every vote by itself.
func (c Cell) ForVote(number int) Cell {
	if number > 0 {
		c.TaskID = fmt.Sprintf("%s.vote-%d", c.TaskID, number+1)
		c.Seed = draw(c.Seed, "vote", c.TaskID, c.Arm, c.RunIndex) >> 11
	}
	return c
}

// Alias names the cell wherever its agent, its hooks or its judge could read the name: it tells
// neither the task nor the arm, and is as long for every cell. Records have it beside both.
func (c Cell) Alias() string {
	return fmt.Sprintf("%016x", draw(c.Seed, "alias", c.TaskID, c.Arm, c.RunIndex))
}

// Name names the cell for people, in messages and records.
func (c Cell) Name() string {
	return fmt.Sprintf("%s.%s.%d", fileName(c.TaskID), fileName(c.Arm), c.RunIndex)
}

// fileName makes a name safe as one part of a path.
func fileName(name string) string {
	var out bytes.Buffer
	for i, b := range []byte(name) {
		if b == '.' && i == 0 || !slices.Contains(safeBytes, b) {
			fmt.Fprintf(&out, "~%02x", b)
			continue
		}
		out.WriteByte(b)
	}
	return out.String()
}

var safeBytes = []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
