package selfedit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/internal/lazyregexp"
)

// settings is one parsed settings file.
type settings struct {
	path string
	// root is the grandparent directory of the file; the file's rules are relative to it.
	root  string
	allow []string
	// hasAllow is false if permissions.allow is missing or is not an array.
	hasAllow bool
	deny     []string
	// commands are all texts in those parts of the file that make the agent run programs.
	commands []string
}

const settingsName = ".claude/settings.json"

// findSettings returns the directory nearest upward from dir that has a settings file.
func findSettings(dir string) (root string, err error) {
	for current := dir; ; current = filepath.Dir(current) {
		_, err := os.Lstat(filepath.Join(current, settingsName))
		switch {
		case err == nil:
			return current, nil
		case !isAbsent(err):
			return "", notAllowed("failed to look for a settings file: %v", err)
		case current == filepath.Dir(current):
			return "", notAllowed("no %s found walking upward from %s", settingsName, display.Name(dir))
		}
	}
}

// parseSettings reads the text of a settings file. It is strict where leniency could hide a rule:
// two members of the same name are an error.
func parseSettings(path, root string, text []byte) (settings, error) {
	parsed := settings{path: path, root: root}
	var file map[string]any
	if err := document.DecodeJSON(path, text, &file); err != nil {
		return parsed, notAllowed("failed to parse %s", display.Name(err.Error()))
	}
	permissions, _ := file["permissions"].(map[string]any)
	parsed.allow, parsed.hasAllow = stringsOf(permissions["allow"])
	if denied := permissions["deny"]; denied != nil {
		var isArray bool
		if parsed.deny, isArray = stringsOf(denied); !isArray {
			return parsed, notAllowed("permissions.deny in %s is not an array, so what it denies is unknown",
				display.Name(path))
		}
	}
	for _, member := range commandMembers {
		parsed.commands = append(parsed.commands, textsIn(file[member])...)
	}
	return parsed, nil
}

// stringsOf returns the strings of a JSON array, leaving out what is not a string, and whether it
// is an array at all.
func stringsOf(value any) (texts []string, isArray bool) {
	elements, isArray := value.([]any)
	for _, element := range elements {
		if text, ok := element.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts, isArray
}

// textsIn returns every string value anywhere in a JSON value, except for the names of tools that a
// hook matches, where * is every tool and no file.
func textsIn(value any) (texts []string) {
	switch value := value.(type) {
	case string:
		return []string{value}
	case []any:
		for _, element := range value {
			texts = append(texts, textsIn(element)...)
		}
	case map[string]any:
		for name, member := range value {
			if name != "matcher" {
				texts = append(texts, textsIn(member)...)
			}
		}
	}
	return texts
}

var editRule = lazyregexp.New(`^Edit\((.+)\)$`)

// matchAllow returns the first Edit() rule that matches a path relative to the settings' root.
func (s settings) matchAllow(rel string) (rule string, err error) {
	if !s.hasAllow {
		return "", notAllowed("no permissions.allow array in %s", display.Name(s.path))
	}
	var tried []string
	for _, text := range s.allow {
		found := editRule.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		pattern, err := glob.Compile(found[1])
		if err == nil && pattern.Match(rel) {
			return text, nil
		}
		shown := display.Name(text)
		if unsupported, ok := errors.AsType[*glob.UnsupportedError](err); ok {
			shown += fmt.Sprintf(" (never matches, unsupported: %s)", unsupported.Reason)
		}
		tried = append(tried, shown)
	}
	if len(tried) == 0 {
		return "", notAllowed("no Edit() rules in permissions.allow of %s", display.Name(s.path))
	}
	return "", notAllowed("no Edit() rule in %s matches '%s'; rules tried: %s", display.Name(s.path), display.Name(rel),
		strings.Join(tried, ", "))
}
