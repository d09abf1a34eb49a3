// Package profile defines who takes part in a session: profiles, which are Markdown files with
// front matter, the skills they name, and the system prompts that are composed from them.
package profile

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/lazyregexp"
)

//go:embed profiles/*.md
var shippedProfiles embed.FS

// Profile defines a participant, as a file in .claude/agents does.
type Profile struct {
	FrontMatter
	Persona  string // the body without its session protocol
	Protocol string // the section of that name
}

// wordList is a list that people write as a YAML list or as one string with commas.
type wordList []string

// UnmarshalYAML accepts both ways.
func (l *wordList) UnmarshalYAML(decode func(any) error) error {
	var list []string
	if decode(&list) == nil {
		*l = list
		return nil
	}
	var line string
	if err := decode(&line); err != nil {
		return err
	}
	*l = wordList{} // which is not the same as none
	for word := range strings.SplitSeq(line, ",") {
		if word = strings.TrimSpace(word); word != "" {
			*l = append(*l, word)
		}
	}
	return nil
}

// JSONSchema implements document.Describer.
func (wordList) JSONSchema() map[string]any {
	return map[string]any{"type": []string{"array", "string"}, "items": map[string]any{"type": "string"}}
}

// FrontMatter holds the settings of a profile between the two lines of dashes.
type FrontMatter struct {
	Name        string   `yaml:"name" doc:"Name of the participant; default: the name of the file." pattern:"."`
	Description string   `yaml:"description" doc:"What the participant is for; others see it as its role."`
	Agent       string   `yaml:"agent" doc:"Agent that plays the part." pattern:"."`
	Model       string   `yaml:"model" doc:"Model of the agent; inherit means that the caller decides." pattern:"."`
	Tools       wordList `yaml:"tools" doc:"The only tools it may use, as a list or separated by commas."`
	Skills      wordList `yaml:"skills" doc:"Skills that are staged for it."`
	MaxTurns    int      `yaml:"maxTurns" doc:"Turns of the model for each prompt; 0 is unlimited." min:"0"`
	Cwd         string   `yaml:"cwd" doc:"Directory it works in, relative to the lead's." pattern:"."`
	// Other fields belong to other tools and are left alone.
	Other map[string]any `yaml:",inline"`
}

// Load reads a profile by name. A profile that ships with the binary is used if the directory has
// none of that name.
func Load(dir, name string) (Profile, error) {
	if !ValidName(name) || strings.Contains(name, "..") {
		return Profile{}, fmt.Errorf("profile name %q: use the name of a file in %s, without its .md", name, dir)
	}
	file := filepath.Join(dir, name+".md")
	text, err := readInside(dir, name+".md")
	if errors.Is(err, fs.ErrNotExist) {
		if shipped, shippedErr := shippedProfiles.ReadFile("profiles/" + name + ".md"); shippedErr == nil {
			text, err = shipped, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Profile{}, fmt.Errorf("profile %q: there is no %s%w", name, file,
			missingProfile{others: profilesIn(dir)})
	}
	if err != nil {
		return Profile{}, fmt.Errorf("profile %q: %w", name, err)
	}
	p, err := parse(file, text)
	if err != nil {
		return Profile{}, fmt.Errorf("profile %q: %w", name, err)
	}
	return p, nil
}

// missingProfile is fs.ErrNotExist with the names of the profiles that exist.
type missingProfile struct{ others []string }

func (e missingProfile) Error() string {
	if len(e.others) == 0 {
		return ", nor any other profile"
	}
	return "; there are " + strings.Join(e.others, ", ")
}

func (missingProfile) Unwrap() error { return fs.ErrNotExist }

// profilesIn returns the names of the profiles in a directory.
func profilesIn(dir string) []string {
	files, _ := os.ReadDir(dir) // one that cannot be read has none
	var names []string
	for _, file := range files {
		if name, is := strings.CutSuffix(file.Name(), ".md"); is {
			names = append(names, name)
		}
	}
	return names
}

// readInside reads a file of a directory without following it out of there.
func readInside(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.ReadFile(name)
}

// parse splits a profile into its parts.
func parse(file string, text []byte) (Profile, error) {
	var p Profile
	trimmed := bytes.TrimLeft(text, "\ufeff \t\r\n")
	if bytes.HasPrefix(trimmed, []byte("---")) && len(trimmed) != len(text) {
		return Profile{}, fmt.Errorf("%s: the front matter must start in the first line; remove what is before ---",
			file)
	}
	if len(trimmed) == 0 {
		return Profile{}, fmt.Errorf("%s is empty: a profile that says nothing would allow everything", file)
	}
	settings, body, err := document.FrontMatter(file, text)
	if err != nil {
		return Profile{}, err
	}
	if settings == nil {
		if err := checkUnfenced(file, string(trimmed)); err != nil {
			return Profile{}, err
		}
	}
	if settings != nil && !settings.Empty() {
		if err := settings.Conforms(FrontMatter{}); err != nil {
			return Profile{}, err
		}
		if err := settings.Decode(&p.FrontMatter); err != nil {
			return Profile{}, err
		}
		if err := checkOther(file, p.Other); err != nil {
			return Profile{}, err
		}
		if p.Tools != nil && len(p.Tools) == 0 {
			return Profile{},
				fmt.Errorf("%s: tools is empty; name at least one tool, or leave tools out to allow all", file)
		}
	}
	p.Persona, p.Protocol = hoistProtocol(string(body))
	return p, nil
}

// checkUnfenced refuses a text that was meant to have settings: they would be taken for text, and
// everything that they restrict would be allowed.
func checkUnfenced(file, text string) error {
	first, _, _ := strings.Cut(text, "\n")
	name, _, isSetting := strings.Cut(first, ":")
	if isSetting && slices.Contains(known, strings.TrimSpace(name)) || strings.HasPrefix(first, "--") {
		return fmt.Errorf("%s: the first line %q looks like a setting; put settings between two lines ---", file,
			display.CutRunes(display.Line(first), 80))
	}
	return nil
}

// known are the settings of a profile, and toolSettings those of other programs that would mean
// fewer tools: to ignore one of them would give the participant all tools.
var (
	known        = []string{"name", "description", "agent", "model", "tools", "skills", "maxTurns", "cwd"}
	toolSettings = []string{"allowedTools", "disallowedTools"}
)

// checkOther refuses settings that were meant to be one of ours. All others belong to other tools.
func checkOther(file string, other map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(other)) {
		plain := plainName(name)
		for _, setting := range known {
			if nearlyEqual(plain, plainName(setting)) {
				return fmt.Errorf("%s: there is no setting %q; did you mean %s?", file, name, setting)
			}
		}
		for _, setting := range toolSettings {
			if nearlyEqual(plain, plainName(setting)) {
				return fmt.Errorf("%s: the setting %q is not supported; list the tools that it may use in tools", file,
					name)
			}
		}
	}
	return nil
}

func plainName(name string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
}

// nearlyEqual reports whether two words differ in at most one letter.
func nearlyEqual(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	same := 0
	for same < len(a) && a[same] == b[same] {
		same++
	}
	switch len(b) - len(a) {
	case 0:
		return same == len(a) || a[same+1:] == b[same+1:]
	case 1:
		return a[same:] == b[same+1:]
	default:
		return false
	}
}

// ValidName reports whether a name is valid for a profile or a participant, which appears in file
// names, in inbox lines and in traces.
func ValidName(name string) bool {
	return len(name) <= 64 && nameForm.MatchString(name)
}

// nameForm leaves the length to ValidName: counted repetitions make an expression that is slow to
// compile, at every start.
var nameForm = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
