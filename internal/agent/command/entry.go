package command

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/model"
)

// Entry describes a program, as agents.yaml does.
type Entry struct {
	ID        string            `yaml:"id" doc:"name of the agent" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$" required:"true"`
	Kind      string            `yaml:"kind" enum:"command" required:"true"`
	Title     string            `yaml:"title" doc:"name for people"`
	Command   string            `yaml:"command" doc:"program and arguments; {prompt} is the file of the prompt, which is on standard input without it" required:"true"`
	Resume    string            `yaml:"resume" doc:"the command that continues the conversation {session}"`
	Events    string            `yaml:"events" doc:"what standard output is: the answer, or one event a line" enum:"text,ndjson"`
	Cost      string            `yaml:"cost" doc:"reported: its usage events say what was spent in dollars" enum:"reported"`
	Env       map[string]string `yaml:"env" doc:"variables of its environment; words in braces are filled in"`
	Keys      []string          `yaml:"keys" doc:"variables of yours that it may see; their values are redacted"`
	Read      []string          `yaml:"read" doc:"files and directories beside this file that it must be able to read in a sandbox"`
	Protocols agent.Protocols   `yaml:"protocols" doc:"model protocols that it speaks"`
	Install   string            `yaml:"install" doc:"command that installs it"`
	Login     string            `yaml:"login" doc:"how to give it credentials"`
	Places    agent.Places      `yaml:"places" json:",omitzero" doc:"where it reads what a project brings, relative to the working directory"`

	// Dir is the directory that ./ and ../ are relative to.
	Dir string `yaml:"-"`
}

// What standard output can be.
const (
	eventsText   = "text"
	eventsNDJSON = "ndjson"
)

// The words that are filled in.
const (
	wordPrompt   = "{prompt}"
	wordSystem   = "{system}"
	wordMCP      = "{mcp}"
	wordModel    = "{model}"
	wordModelURL = "{model_url}"
	wordSession  = "{session}"
	wordDir      = "{dir}"
	wordHome     = "{home}"
)

var (
	words = []string{
		wordPrompt, wordSystem, wordMCP, wordModel, wordModelURL, wordSession, wordDir, wordHome,
	}
	wordForm = lazyregexp.New(`\{[a-z_]+\}`)
)

// Validate returns an error if an entry is not valid, beginning with the field.
func (e Entry) Validate() error {
	for _, field := range []struct{ name, text string }{{"command", e.Command}, {"resume", e.Resume}} {
		split, err := agent.Words(field.text)
		if err != nil {
			return fmt.Errorf("%s: %w", field.name, err)
		}
		if len(split) == 0 && field.name == "command" {
			return errors.New("command: it is empty; give a program and its arguments")
		}
		if err := knownWords(field.name, field.text); err != nil {
			return err
		}
	}
	if e.Resume != "" && !strings.Contains(e.Resume, wordSession) {
		return fmt.Errorf("resume: it has no %s, so it cannot know which conversation to continue", wordSession)
	}
	if e.Resume != "" && e.Events != eventsNDJSON && !strings.Contains(e.Command, wordSession) {
		return fmt.Errorf("resume: the id of the conversation is not known; put %s into command, or print it with "+
			"events: ndjson", wordSession)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		if err := agent.CheckVariable(name); err != nil {
			return err
		}
		if err := knownWords("env."+name, e.Env[name]); err != nil {
			return err
		}
	}
	return e.Places.Validate()
}

func knownWords(field, text string) error {
	if strings.Contains(text, "{{") {
		return fmt.Errorf("%s: {{ is not filled in here; there are %s", field, strings.Join(words, ", "))
	}
	for _, word := range wordForm.Get().FindAllString(text, -1) {
		if !slices.Contains(words, word) {
			return fmt.Errorf("%s: %s is not a known placeholder; use one of %s",
				field, word, strings.Join(words, ", "))
		}
	}
	return nil
}

// has reports whether a word is in the command, in the one that resumes, or in a variable.
func (e Entry) has(word string) bool {
	texts := append(slices.Collect(maps.Values(e.Env)), e.Command, e.Resume)
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, word) })
}

// split returns the words of a command line, with files beside the entry as absolute paths. Errors
// were found by Validate.
func (e Entry) split(line string) []string {
	split, _ := agent.Words(line)
	for i, word := range split {
		split[i] = e.local(word)
	}
	return split
}

func (e Entry) local(word string) string {
	if !strings.HasPrefix(word, "./") && !strings.HasPrefix(word, "../") {
		return word
	}
	return filepath.Join(e.Dir, word)
}

// files returns the paths that the entry names: arguments that begin with ./ or ../ or are absolute
// paths of files, and Read.
func (e Entry) files() []string {
	var files []string
	named, _ := agent.Words(e.Command)
	resumed, _ := agent.Words(e.Resume)
	for i, word := range slices.Concat(named, resumed) {
		path := e.local(word)
		script := path != word || i > 0 && agent.IsScript(word)
		if script && !slices.Contains(files, path) {
			files = append(files, path)
		}
	}
	for _, path := range e.Read {
		if !filepath.IsAbs(path) {
			path = filepath.Join(e.Dir, path)
		}
		files = append(files, path)
	}
	return files
}

func (e Entry) keys() []string {
	if e.Keys == nil {
		return append(model.Credentials(), "GOOGLE_API_KEY") // the usual ones
	}
	return e.Keys
}
