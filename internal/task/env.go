package task

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// The environment files, in the order in which they are read: the first definition wins.
var envFiles = []string{".env.local", ".env"}

// minSecretLength is the length from which a value can be redacted without damaging everything
// else: a "1" is in every text.
const minSecretLength = 6

// pair is one line of an environment file.
type pair struct{ Name, Value string }

// parseEnv reads the text of an environment file: NAME=value lines. Blank lines, lines that begin
// with #, and lines without a name and an equals sign are skipped. White space around names and
// values and one pair of quotes around a value are dropped; everything else is taken as it is.
func parseEnv(text string) []pair {
	var pairs []pair
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, found := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !found || name == "" || strings.ContainsRune(line, 0) {
			continue
		}
		pairs = append(pairs, pair{name, unquote(strings.TrimSpace(value))})
	}
	return pairs
}

func unquote(value string) string {
	if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
		return value[1 : len(value)-1]
	}
	return value
}

// RenderEnv is the inverse for one file: it returns NAME=value lines of the variables that belong
// to it, or "" if there are none.
func RenderEnv(variables []Variable, file string) string {
	var out strings.Builder
	for _, v := range variables {
		if v.File == file {
			fmt.Fprintf(&out, "%s=%s\n", v.Name, v.Value)
		}
	}
	return out.String()
}

// loadEnv reads the environment files of directories: those of a family and a task. Values of the
// given environment win over the files, and what was defined first over what comes later. Nothing
// is put into the environment of this process: the next task must not see it.
func loadEnv(read func(name string) ([]byte, error), dirs, environ []string, secrets secretNames) (
	[]Variable, []string, error,
) {
	given := valuesOf(environ)
	values := map[string]string{}
	var variables []Variable
	seen := map[Variable]bool{}
	for _, dir := range dirs {
		for _, file := range envFiles {
			text, err := read(path.Join(dir, file))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			for _, pair := range parseEnv(string(text)) {
				value, known := values[pair.Name]
				if !known {
					value = pair.Value
					if outer, ok := given[pair.Name]; ok {
						value = outer
					}
					values[pair.Name] = value
				}
				key := Variable{Name: pair.Name, File: file}
				if !seen[key] {
					seen[key] = true
					variables = append(variables, Variable{
						Name:   pair.Name,
						Value:  value,
						File:   file,
						Secret: secrets.covers(pair.Name, value),
					})
				}
			}
		}
	}
	return variables, emptyWarnings(variables), nil
}

// valuesOf returns the variables of an environment as os.Environ gives it, by name.
func valuesOf(environ []string) map[string]string {
	values := map[string]string{}
	for _, variable := range environ {
		if name, value, ok := strings.Cut(variable, "="); ok {
			values[name] = value
		}
	}
	return values
}

// emptyWarnings names the variables that have no value, one warning per file.
func emptyWarnings(variables []Variable) []string {
	var warnings []string
	for _, file := range []string{".env", ".env.local"} {
		var names []string
		for _, v := range variables {
			if v.File == file && v.Value == "" {
				names = append(names, v.Name)
			}
		}
		if len(names) > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: no value for %s", file, strings.Join(names, ", ")))
		}
	}
	return warnings
}

// secretNames decides which variables are secret: those that are declared, and those whose name
// looks like a credential, unless it is declared public.
type secretNames struct{ secret, public []string }

// credentialWords mark a name as that of a credential, if they are a word of it.
var credentialWords = []string{
	"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY", "CREDENTIAL",
	"CREDENTIALS", "PAT",
}

func (s secretNames) covers(name, value string) bool {
	if len(value) < minSecretLength {
		return false
	}
	return slices.Contains(s.secret, name) || looksLikeCredential(name) && !slices.Contains(s.public, name)
}

func looksLikeCredential(name string) bool {
	words := strings.FieldsFunc(strings.ToUpper(name), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	for i, word := range words {
		if slices.Contains(credentialWords, word) {
			return true
		}
		if word == "KEY" && i > 0 && slices.Contains([]string{
			"API", "ACCESS", "PRIVATE", "SECRET", "SIGNING",
			"ENCRYPTION", "AUTH", "SERVICE",
		}, words[i-1]) {
			return true
		}
	}
	return false
}
