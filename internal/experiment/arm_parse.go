package experiment

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/near"
)

// armKeys are the keys of an arm on the command line.
var armKeys = []string{
	"agent", "model", "modelUrl", "profile", "skills", "context", "instructions", "files", "mcp", "settings", "effort",
	"temperature", "prompt", "tools", "env", "maxTurns", "auth", "lead", "leadModel", "needs",
}

// ArmKeys returns the keys of an arm on the command line.
func ArmKeys() []string { return armKeys }

// textKeys are those whose values are free text, in which a comma and a word with a colon may
// stand.
var textKeys = []string{"prompt", "env"}

var (
	armKey    = lazyregexp.New(`^\s*([A-Za-z]+):`)
	armKeySep = lazyregexp.New(`,\s*([A-Za-z][A-Za-z_-]*):`)
)

// ParseArm reads an arm from a flag: name=key:value,key:value. A value ends at a comma that is
// followed by a known key and a colon; a value in double quotes ends with them. Values may be
// empty. The text of prompt:@FILE is that of the file. resolve turns the paths of an arm into paths
// of this process; nil leaves them as they are.
func ParseArm(text string, resolve func(path string) string) (Arm, error) {
	name, rest, _ := strings.Cut(text, "=")
	p := armParser{arm: Arm{Name: strings.TrimSpace(name)}, resolve: resolve, seen: map[string]bool{}}
	if resolve == nil {
		p.resolve = func(path string) string { return path }
	}
	if !validArmName(p.arm.Name) {
		return Arm{}, fmt.Errorf("arm %q: must be NAME=key:value,…, e.g. before=agent:AGENT, with a name of letters, "+
			"digits, dots, dashes and underscores", text)
	}
	for rest != "" {
		at := armKey.Get().FindStringSubmatchIndex(rest)
		if at == nil {
			return Arm{}, fmt.Errorf("arm %q: %q does not begin with one of the keys %s; an agent is named with "+
				"%s=agent:%s", p.arm.Name, rest, strings.Join(armKeys, ", "), p.arm.Name, rest)
		}
		key := rest[at[2]:at[3]]
		if !slices.Contains(armKeys, key) {
			return Arm{}, p.unknown(key)
		}
		value, after, quoted, err := p.value(key, rest[at[1]:])
		if err == nil {
			err = p.set(key, value, quoted)
		}
		rest = after
		if err != nil {
			return Arm{}, fmt.Errorf("arm %q: %w", p.arm.Name, err)
		}
	}
	return p.arm, nil
}

// armParser reads one arm.
type armParser struct {
	arm     Arm
	resolve func(string) string
	seen    map[string]bool
}

func (p *armParser) unknown(key string) error {
	if meant := near.Word(key, armKeys); meant != "" {
		return fmt.Errorf("arm %q: there is no key %s; did you mean %s?", p.arm.Name, key, meant)
	}
	return fmt.Errorf("arm %q: there is no key %s; the keys are %s", p.arm.Name, key, strings.Join(armKeys, ", "))
}

// value splits a text into the value that it begins with and what follows the next comma.
func (p *armParser) value(key, text string) (value, rest string, quoted bool, err error) {
	if strings.HasPrefix(text, `"`) {
		value, rest, err = quotedValue(key, text)
		return value, rest, true, err
	}
	for _, at := range armKeySep.Get().FindAllStringSubmatchIndex(text, -1) {
		word := text[at[2]:at[3]]
		if slices.Contains(armKeys, word) {
			return text[:at[0]], text[at[0]+1:], false, nil
		}
		meant := near.Word(word, armKeys)
		switch {
		case meant != "" && slices.Contains(textKeys, key):
			return "", "", false,
				fmt.Errorf("there is no key %s; did you mean %s? Put the value of %s into double quotes "+
					"if it is part of the text", word, meant, key)
		case meant != "":
			return "", "", false, fmt.Errorf("there is no key %s; did you mean %s?", word, meant)
		case !slices.Contains(textKeys, key):
			return "", "", false,
				fmt.Errorf("there is no key %s; put the value of %s into double quotes if it is part of "+
					"it", word, key)
		}
	}
	return text, "", false, nil
}

// quotedValue reads a value in double quotes, in which \" and \\ stand for a quote and a backslash.
func quotedValue(key, text string) (value, rest string, err error) {
	var out strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\\'):
			i++
			out.WriteByte(text[i])
		case c != '"':
			out.WriteByte(c)
		default:
			after := strings.TrimSpace(text[i+1:])
			if after != "" && after[0] != ',' {
				return "", "",
					fmt.Errorf("%q follows the quotes of %s; put the whole value into them, with \\\" for a quote",
						after, key)
			}
			return out.String(), strings.TrimPrefix(after, ","), nil
		}
	}
	return "", "", fmt.Errorf("the quotes of %s are not closed", key)
}

func (p *armParser) set(key, value string, quoted bool) error {
	if p.seen[key] && key != "env" {
		return fmt.Errorf("%s is given twice", key)
	}
	p.seen[key] = true
	a := &p.arm
	fields := map[string]*string{
		"agent": &a.Agent, "model": &a.Model, "modelUrl": &a.ModelURL, "profile": &a.Profile, "effort": &a.Effort,
		"auth": &a.Auth, "lead": &a.Lead, "leadModel": &a.LeadModel,
	}
	paths := map[string]*string{
		"instructions": &a.Instructions, "files": &a.Files, "mcp": &a.MCP, "settings": &a.Settings,
	}
	switch {
	case fields[key] != nil:
		*fields[key] = value
	case paths[key] != nil:
		*paths[key] = p.path(value)
	case key == "skills":
		a.Skills = ResolveSkills(value, p.path)
	case key == "prompt":
		return p.setPrompt(value, quoted)
	case key == "needs":
		a.Needs = words(value)
	case key == "tools":
		a.AllowedTools = words(value)
	case key == "env":
		return p.setVariable(value)
	default:
		return p.setChecked(key, value)
	}
	return nil
}

// setChecked sets what is not any text.
func (p *armParser) setChecked(key, value string) error {
	switch key {
	case "context":
		if value != contextProject && value != contextNone {
			return fmt.Errorf("context %q: want %s or %s", value, contextProject, contextNone)
		}
		p.arm.Context = value
	case "maxTurns":
		turns, err := strconv.Atoi(value)
		if err != nil || turns < 0 {
			return fmt.Errorf("maxTurns %q: must be a whole number of at least 0", value)
		}
		p.arm.MaxTurns = turns
	case "temperature":
		degree, err := strconv.ParseFloat(value, 64)
		if err != nil || degree < 0 || math.IsInf(degree, 0) || math.IsNaN(degree) {
			return fmt.Errorf("temperature %q: want a number of at least 0", value)
		}
		p.arm.Temperature = &degree
	}
	return nil
}

func (p *armParser) setVariable(value string) error {
	variable, content, ok := strings.Cut(value, "=")
	if !ok || variable == "" {
		return fmt.Errorf("env %q: must be env:NAME=value", value)
	}
	if _, twice := p.arm.Env[variable]; twice {
		return fmt.Errorf("env %s is given twice", variable)
	}
	if p.arm.Env == nil {
		p.arm.Env = map[string]string{}
	}
	p.arm.Env[variable] = content
	return nil
}

// setPrompt takes the text, or that of the file that is named after an @.
func (p *armParser) setPrompt(value string, quoted bool) error {
	p.arm.Prompt = value
	file, isFile := strings.CutPrefix(value, "@")
	if !isFile || quoted {
		return nil
	}
	content, err := readRegular(p.path(file))
	if err != nil {
		return fmt.Errorf("prompt: %w", err)
	}
	if p.arm.Prompt = strings.TrimRight(string(content), "\n"); strings.TrimSpace(p.arm.Prompt) == "" {
		return fmt.Errorf("prompt: %s is empty", file)
	}
	return nil
}

func (p *armParser) path(text string) string {
	if text == "" {
		return ""
	}
	return p.resolve(text)
}

// ResolveSkills resolves every directory of a skills setting.
func ResolveSkills(text string, resolve func(string) string) string {
	if text == "" {
		return ""
	}
	if whole := resolve(text); exists(whole) {
		return whole
	}
	parts := SkillPaths(text)
	for i := range parts {
		parts[i] = resolve(parts[i])
	}
	return strings.Join(parts, "+")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '+' || r == ' ' })
}
