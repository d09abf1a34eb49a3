package experiment

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// Arm is a complete agent configuration. "Agent A against agent B" and "skill v1 against skill v2"
// are the same question: two arms.
type Arm struct {
	Name         string            `json:"name" yaml:"name" doc:"what the arm is called in reports" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" required:"true"`
	Agent        string            `json:"agent,omitempty" yaml:"agent" doc:"registered agent; empty is the first that is installed"`
	Model        string            `json:"model,omitempty" yaml:"model" doc:"model of the agent; empty is the agent's own"`
	ModelURL     string            `json:"modelUrl,omitempty" yaml:"modelUrl" doc:"model endpoint, without /v1; {cell} and {seed} are filled in"`
	Profile      string            `json:"profile,omitempty" yaml:"profile" doc:"profile of the agent: .claude/agents/NAME.md in its working directory"`
	Skills       string            `json:"skills,omitempty" yaml:"skills" doc:"directory that contains .claude, in place of the family's"`
	Context      string            `json:"context,omitempty" yaml:"context" doc:"what the agent reads of its project; default project" enum:"project,none"`
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
	Auth         string            `json:"auth,omitempty" yaml:"auth" doc:"how the agent is logged in, where there is a choice" enum:"subscription,apikey"`
	Lead         string            `json:"lead,omitempty" yaml:"lead" doc:"agent of a supervising lead; empty: the agent gets the task word for word"`
	LeadModel    string            `json:"leadModel,omitempty" yaml:"leadModel" doc:"model of the lead"`
	Needs        []string          `json:"needs,omitempty" yaml:"needs" doc:"labels that a worker of a fleet must have to run the arm"`
	// of everything above and of the content of the skills directory
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
			problems = append(problems, fmt.Errorf("two arms are called %q", arm.Name))
		}
		if arm.LeadModel != "" && arm.Lead == "" {
			problems = append(problems, fmt.Errorf("arm %q has a leadModel but no lead", arm.Name))
		}
		seen[arm.Name] = true
	}
	return errors.Join(problems...)
}

// Seal fills in the hash of an arm: over its settings and over the content of its skills. The paths
// of the skills, the model's address, the worker that runs the arm and the arm's name make no
// difference to the agent, so they are not part of the hash. The model is part of it.
func (a *Arm) Seal() error {
	same := *a
	same.Name, same.Hash, same.ModelURL, same.Needs = "", "", "", nil
	if a.Skills != "" {
		skills, err := TreeDigest(filepath.Join(a.Skills, ".claude"))
		if err != nil {
			return fmt.Errorf("skills of arm %q: %w", a.Name, err)
		}
		same.Skills = skills
	}
	content, err := json.Marshal(same)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	a.Hash = "sha256:" + hex.EncodeToString(sum[:])
	return nil
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
func TreeDigest(dir string) (string, error) {
	hash := sha256.New()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		kind, sum, err := fileDigest(path, entry)
		if err != nil {
			return err
		}
		fmt.Fprintf(hash, "%s\x00%s\x00%x\n", filepath.ToSlash(rel), kind, sum)
		return nil
	})
	if err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil)), nil
}

func fileDigest(path string, entry fs.DirEntry) (kind string, sum [sha256.Size]byte, err error) {
	if entry.Type()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(path)
		return "link", sha256.Sum256([]byte(target)), err
	}
	info, err := entry.Info()
	if err != nil {
		return "", sum, err
	}
	if !info.Mode().IsRegular() {
		return "", sum, fmt.Errorf("%s is not a regular file", path)
	}
	content, err := os.ReadFile(path)
	kind = "file"
	if info.Mode()&0o111 != 0 {
		kind = "program"
	}
	return kind, sha256.Sum256(content), err
}

// ParseArm reads an arm from a flag: name=key:value,key:value. A value ends at a comma that is
// followed by a known key and a colon, so that it may itself hold commas and colons. Values may be
// empty.
func ParseArm(text string) (Arm, error) {
	name, rest, _ := strings.Cut(text, "=")
	arm := Arm{Name: strings.TrimSpace(name)}
	if !validArmName(arm.Name) {
		return Arm{}, fmt.Errorf("arm %q: want name=key:value,… with a name of letters, digits, dots, dashes and "+
			"underscores", text)
	}
	for rest != "" {
		at := armKey.Get().FindStringSubmatchIndex(rest)
		if at == nil || at[0] != 0 {
			return Arm{}, fmt.Errorf("arm %q: %q does not begin with one of the keys %s", arm.Name, rest,
				strings.Join(armKeys, ", "))
		}
		key, value := rest[at[2]:at[3]], rest[at[1]:]
		rest = ""
		if next := nextArmKey.Get().FindStringIndex(value); next != nil {
			value, rest = value[:next[0]], value[next[0]+1:]
		}
		if err := arm.set(key, value); err != nil {
			return Arm{}, err
		}
	}
	return arm, nil
}

var (
	armKeys = []string{
		"agent", "model", "modelUrl", "profile", "skills", "prompt", "tools", "env", "maxTurns",
		"auth", "lead", "leadModel", "needs",
	}
	armKey     = lazyregexp.New(`^\s*(` + strings.Join(armKeys, "|") + `):`)
	nextArmKey = lazyregexp.New(`,\s*(` + strings.Join(armKeys, "|") + `):`)
)

func (a *Arm) set(key, value string) error {
	fields := map[string]*string{
		"agent": &a.Agent, "model": &a.Model, "modelUrl": &a.ModelURL, "profile": &a.Profile, "skills": &a.Skills,
		"prompt": &a.Prompt, "auth": &a.Auth,
		"lead": &a.Lead, "leadModel": &a.LeadModel,
	}
	switch {
	case fields[key] != nil:
		*fields[key] = value
	case key == "needs":
		a.Needs = strings.FieldsFunc(value, func(r rune) bool { return r == '+' || r == ' ' })
	case key == "tools":
		a.AllowedTools = strings.FieldsFunc(value, func(r rune) bool { return r == '+' || r == ' ' })
	case key == "maxTurns":
		turns, err := strconv.Atoi(value)
		if err != nil || turns < 0 {
			return fmt.Errorf("arm %q: maxTurns %q: want a whole number of at least 0", a.Name, value)
		}
		a.MaxTurns = turns
	case key == "env":
		variable, content, ok := strings.Cut(value, "=")
		if !ok || variable == "" {
			return fmt.Errorf("arm %q: env %q; want env:NAME=value", a.Name, value)
		}
		if a.Env == nil {
			a.Env = map[string]string{}
		}
		a.Env[variable] = content
	}
	return nil
}

// ModelURL fills the placeholders of a model URL with the cell, so that a scripted model can draw
// for each cell by itself.
func (c Cell) ModelURL(url string) string {
	return strings.NewReplacer("{cell}", c.Name(), "{seed}", strconv.FormatUint(c.Seed, 10)).Replace(url)
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

// Name names the cell in URLs and file names.
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
