package http

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	nethttp "net/http"
	"net/url"
	"slices"
	"strings"

	jmespath "github.com/jmespath-community/go-jmespath"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/lazyregexp"
)

// Entry describes a deployed agent, as agents.yaml does.
type Entry struct {
	ID      string            `yaml:"id" doc:"name of the agent" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$" required:"true"`
	Kind    string            `yaml:"kind" enum:"http" required:"true"`
	Title   string            `yaml:"title" doc:"name for people"`
	URL     string            `yaml:"url" doc:"where requests are sent; {session} and {model} are filled in" required:"true"`
	Method  string            `yaml:"method" doc:"method of the request; POST if it is not given" enum:"POST,PUT,GET"`
	Headers map[string]string `yaml:"headers" doc:"headers of the request; ${NAME} is a variable of your environment"`
	Body    any               `yaml:"body" doc:"body of the request; {prompt}, {system}, {model} and {session} are filled in inside its strings"`
	Answer  string            `yaml:"answer" doc:"JMESPath expression of the answer; answer if it is not given"`
	Session string            `yaml:"session" doc:"JMESPath expression of the id that continues the conversation"`
	Usage   UsagePaths        `yaml:"usage" doc:"JMESPath expressions of what the request consumed"`
	Retries *int              `yaml:"retries" doc:"how often a request is repeated that failed for a reason that may pass" min:"0" max:"20"`
	Install string            `yaml:"install" doc:"how to get it deployed"`
	Login   string            `yaml:"login" doc:"how to give it credentials"`
}

// UsagePaths says where a reply has its counts of tokens.
type UsagePaths struct {
	Model      string `yaml:"model" doc:"name of the model, for the price"`
	Input      string `yaml:"input" doc:"tokens that were not read from a cache"`
	Output     string `yaml:"output" doc:"tokens of the answer"`
	CacheRead  string `yaml:"cacheRead" doc:"tokens that were read from a cache"`
	CacheWrite string `yaml:"cacheWrite" doc:"tokens that were written to a cache"`
	CostUSD    string `yaml:"costUsd" doc:"what the request cost, in dollars"`
}

// The words that are filled in.
const (
	wordPrompt  = "{prompt}"
	wordSystem  = "{system}"
	wordModel   = "{model}"
	wordSession = "{session}"
)

var (
	words    = []string{wordPrompt, wordSystem, wordModel, wordSession}
	wordForm = lazyregexp.New(`\{[a-z_]+\}`)
	variable = lazyregexp.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
)

// defaultBody is the default body of a request.
var defaultBody = map[string]any{"prompt": wordPrompt, "session": wordSession}

func (e Entry) body() any {
	if e.Body == nil && e.method() != nethttp.MethodGet {
		return defaultBody
	}
	return e.Body
}

func (e Entry) method() string { return cmp.Or(e.Method, nethttp.MethodPost) }
func (e Entry) answer() string { return cmp.Or(e.Answer, "answer") }

// Validate returns an error if an entry is not valid, beginning with the field.
func (e Entry) Validate() error {
	address, err := url.Parse(wordForm.Get().ReplaceAllString(e.URL, "x"))
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return fmt.Errorf("url: %q is not an http or https address", e.URL)
	}
	if address.User != nil {
		return errors.New("url: it has a password; put it into headers as ${NAME}, from where it is redacted")
	}
	if err := knownWords("url", e.URL); err != nil {
		return err
	}
	if err := knownWords("body", texts(e.body())...); err != nil {
		return err
	}
	if !e.has(wordPrompt) {
		return fmt.Errorf("body: it has no %s, so the agent would not learn what to do", wordPrompt)
	}
	if e.method() == nethttp.MethodGet && e.Body != nil {
		return errors.New("body: a GET request has none")
	}
	for field, expression := range e.expressions() {
		if expression == "" {
			continue
		}
		if _, err := jmespath.Compile(expression); err != nil {
			return fmt.Errorf("%s: %q is not a JMESPath expression: %w", field, expression, err)
		}
	}
	for name, value := range e.Headers {
		if rest := variable.Get().ReplaceAllString(value, ""); strings.Contains(rest, "${") {
			return fmt.Errorf("headers.%s: %q: write variables of the environment as ${NAME}", name, value)
		}
	}
	return nil
}

func knownWords(field string, texts ...string) error {
	for _, text := range texts {
		for _, word := range wordForm.Get().FindAllString(text, -1) {
			if !slices.Contains(words, word) {
				return fmt.Errorf("%s: %s is not a known placeholder; use one of %s",
					field, word, strings.Join(words, ", "))
			}
		}
	}
	return nil
}

func (e Entry) expressions() map[string]string {
	return map[string]string{
		"answer": e.answer(), "session": e.Session, "usage.model": e.Usage.Model, "usage.input": e.Usage.Input,
		"usage.output": e.Usage.Output, "usage.cacheRead": e.Usage.CacheRead, "usage.cacheWrite": e.Usage.CacheWrite,
		"usage.costUsd": e.Usage.CostUSD,
	}
}

// has reports whether a word is in the URL or in the body.
func (e Entry) has(word string) bool {
	return slices.ContainsFunc(append(texts(e.body()), e.URL),
		func(text string) bool { return strings.Contains(text, word) })
}

// texts returns all strings of a value.
func texts(value any) []string {
	switch value := value.(type) {
	case string:
		return []string{value}
	case []any:
		var all []string
		for _, item := range value {
			all = append(all, texts(item)...)
		}
		return all
	case map[string]any:
		var all []string
		for _, key := range slices.Sorted(maps.Keys(value)) {
			all = append(all, texts(value[key])...)
		}
		return all
	default:
		return nil
	}
}

// fill replaces the words in the strings of a value. A string that consists of a single unknown
// word becomes null.
func fill(value any, known map[string]string) any {
	switch value := value.(type) {
	case string:
		if content, isWord := known[value]; isWord && content == "" {
			return nil
		}
		return replaced(value, known)
	case []any:
		filled := make([]any, len(value))
		for i, item := range value {
			filled[i] = fill(item, known)
		}
		return filled
	case map[string]any:
		filled := make(map[string]any, len(value))
		for key, item := range value {
			filled[key] = fill(item, known)
		}
		return filled
	default:
		return value
	}
}

func replaced(text string, known map[string]string) string {
	return wordForm.Get().ReplaceAllStringFunc(text, func(word string) string { return known[word] })
}

// variables returns the names of the environment that the headers use.
func (e Entry) variables() []string {
	var names []string
	for _, header := range slices.Sorted(maps.Keys(e.Headers)) {
		for _, match := range variable.FindAllStringSubmatch(e.Headers[header], -1) {
			if !slices.Contains(names, match[1]) {
				names = append(names, match[1])
			}
		}
	}
	return names
}

// missing returns a variable that the headers use and that is not set; empty if there is none.
func (e Entry) missing(environ []string) string {
	for _, name := range e.variables() {
		if agent.Getenv(environ, name) == "" {
			return name
		}
	}
	return ""
}
