package skill

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/jsontape"
)

// EvalsFile has the test cases of a skill, relative to its directory.
const EvalsFile = "evals/evals.json"

// Evals are the test cases of a skill.
type Evals struct {
	SkillName string // empty where the file does not say
	Cases     []Case
	// Notes say what is probably not meant as it is read; they stop nothing.
	Notes []*document.Error
}

// Case is one test case.
type Case struct {
	ID   string
	Name string // for people; empty where the file has none
	Line int
	// Prompt is what the agent is told, Expected what a good answer is.
	Prompt, Expected string
	// Statements are sentences about the run that somebody judges. Where a file has only
	// expected_output, that is the one.
	Statements []Statement
	// Checks are ready checks that code decides, as datasets have them.
	Checks []Check
	// Files are put into the working directory, named as the file names them.
	Files []Statement
	// Silent says that the skill should not be used.
	Silent bool
	// Problems are what is wrong with the case: a part of the error of ParseEvals.
	Problems []error
}

// Check is a ready check with the line that it begins on.
type Check struct {
	JSON json.RawMessage
	Line int
}

// Statement is a text of the file with the line that it begins on.
type Statement struct {
	Text string
	Line int
	// Conduct says that it is about what the agent does, and not about the result.
	Conduct bool
}

// maxCases bounds the test cases of one file.
const maxCases = 2000

// ParseEvals reads evals.json as people write it. The error joins everything that is wrong, each a
// *document.Error.
func ParseEvals(name string, source []byte) (*Evals, error) {
	r, err := newReader(name, source)
	if err != nil {
		return nil, err
	}
	evals := &Evals{}
	list := r.cases(evals)
	seen := map[string]int{}
	for value := range list.Elements() {
		if len(evals.Cases) == maxCases {
			r.wrong(value, "there are more than %d cases; split the file", maxCases)
			break
		}
		before := len(r.problems)
		c := r.evalCase(value, len(evals.Cases)+1)
		if first, twice := seen[c.ID]; twice {
			r.wrong(value, "the id %s is that of line %d too; ids are unique", c.ID, first)
		}
		seen[c.ID] = c.Line
		c.Problems = slices.Clone(r.problems[before:])
		evals.Cases = append(evals.Cases, c)
	}
	if list.Kind() == jsontape.Array && len(evals.Cases) == 0 {
		r.wrong(list, "evals is empty; add a case with a prompt")
	}
	evals.Notes = r.countNotes()
	return evals, errors.Join(r.problems...)
}

// reader reads a JSON file of test cases or queries and collects what is wrong with it.
type reader struct {
	name     string
	source   []byte
	top      jsontape.Value
	parser   jsontape.Parser
	problems []error
	notes    []*document.Error
	noted    map[string]int // how often each note was made
	wrongs   int
}

// maxProblems is how many problems of a file are reported.
const maxProblems = 50

func newReader(name string, source []byte) (*reader, error) {
	source = bytes.TrimPrefix(source, []byte("\uFEFF"))
	if _, err := document.JSONValue(source); err != nil {
		if placed, ok := errors.AsType[*document.Error](err); ok {
			placed.File = name
		}
		return nil, err
	}
	r := &reader{name: name, source: source, noted: map[string]int{}}
	r.top, _ = r.parser.Parse(source) // it is valid JSON
	return r, nil
}

func (r *reader) at(value jsontape.Value, format string, args ...any) *document.Error {
	return &document.Error{File: r.name, Line: r.line(value), Msg: fmt.Sprintf(format, args...)}
}

func (r *reader) line(value jsontape.Value) int {
	if !value.Exists() {
		return 0
	}
	start, _ := value.Span()
	return 1 + bytes.Count(r.source[:start], []byte("\n"))
}

func (r *reader) wrong(value jsontape.Value, format string, args ...any) {
	if r.wrongs++; r.wrongs <= maxProblems {
		r.problems = append(r.problems, r.at(value, format, args...))
	}
}

// note warns of what is probably misread: once, at its first place.
func (r *reader) note(value jsontape.Value, text string) {
	if r.noted[text]++; r.noted[text] == 1 {
		r.notes = append(r.notes, r.at(value, "%s", text))
	}
}

// countNotes adds to each note how often it was made.
func (r *reader) countNotes() []*document.Error {
	for _, one := range r.notes {
		if n := r.noted[one.Msg]; n > 1 {
			one.Msg += fmt.Sprintf(" (%d times)", n)
		}
	}
	return r.notes
}

// renames says what to rename in layouts that are not this one.
var renames = []struct{ key, to string }{
	{"test_cases", `rename test_cases to evals, and in each case expected_behavior to assertions`},
	{"cases", `rename cases to evals, in each case input to prompt, and make "checks" of the commands (command) and ` +
		`"assertions" of the rubric`},
	{"tests", `rename tests to evals; a case has a prompt and assertions`},
	{"queries", asQueries},
}

// asQueries says where a file of queries belongs.
const asQueries = "these are queries, not cases: rename the file to evals/queries.json and run fit skill trigger"

// cases finds the list of cases; a missing value where the file has another layout.
func (r *reader) cases(evals *Evals) jsontape.Value {
	if r.top.Kind() == jsontape.Array {
		for one := range r.top.Elements() {
			if one.Get("query").Exists() {
				r.wrong(r.top, asQueries)
				return jsontape.Value{}
			}
		}
		return r.top
	}
	list := r.top.Get("evals")
	if list.Kind() == jsontape.Array {
		evals.SkillName = r.text(r.top.Get("skill_name"))
		return list
	}
	if list.Exists() {
		r.wrong(list, "evals is not a list of cases")
		return jsontape.Value{}
	}
	hint := `write {"skill_name": "…", "evals": [{"prompt": "…", "assertions": ["…"]}]}`
	for _, one := range renames {
		if r.top.Get(one.key).Exists() {
			hint = one.to
			for first := range r.top.Get(one.key).Elements() {
				if first.Get("prompt").Exists() {
					hint = "rename " + one.key + " to evals"
				}
				break
			}
			break
		}
	}
	r.wrong(r.top, "there is no list evals, but %s; %s", keysOf(r.top), hint)
	return jsontape.Value{}
}

// keysOf says which keys a value has that is not what was expected.
func keysOf(value jsontape.Value) string {
	names := memberNames(value)
	switch {
	case value.Kind() != jsontape.Object:
		return "a value without keys"
	case len(names) == 0:
		return "no keys"
	}
	return "the keys " + strings.Join(names, ", ")
}

func memberNames(value jsontape.Value) []string {
	var names []string
	for name := range value.Members() {
		if len(names) == 12 {
			return append(names, "…")
		}
		names = append(names, strings.Clone(name))
	}
	return names
}

func (r *reader) text(value jsontape.Value) string { return strings.Clone(value.Text()) }

// caseKeys are the keys of a case, those that only describe it included.
var caseKeys = []string{
	"id", "prompt", "expected_output", "files", "assertions", "expectations", "scorers", "checks", "name", "eval_name",
	"category", "type", "tags", "description", "notes", "should_trigger", "negative", "rationale", "title",
	"difficulty", "prompt_type", "kind",
}

func (r *reader) evalCase(value jsontape.Value, number int) Case {
	c := Case{ID: strconv.Itoa(number), Line: r.line(value)}
	if value.Kind() != jsontape.Object {
		r.wrong(value, "case %d is not an object with a prompt", number)
		return c
	}
	var unread []string
	for key, member := range value.Members() {
		if !slices.Contains(caseKeys, key) {
			unread = append(unread, strings.Clone(key))
			r.note(member, fmt.Sprintf("%q is not a key of a case that is read", key))
		}
	}
	if id := value.Get("id"); id.Exists() {
		c.ID = r.id(id, number)
	}
	c.Name = r.text(value.Get("name"))
	if c.Name == "" {
		c.Name = r.text(value.Get("eval_name"))
	}
	if prompt := value.Get("prompt"); prompt.Exists() && prompt.Kind() != jsontape.String {
		r.wrong(prompt, "case %s: the prompt must be a text", c.ID)
	} else if c.Prompt = r.text(prompt); strings.TrimSpace(c.Prompt) == "" {
		hint := ""
		for _, other := range []string{"input", "query", "task", "instruction", "user_prompt"} {
			if value.Get(other).Kind() == jsontape.String {
				hint = "; rename " + other + " to prompt"
			}
		}
		r.wrong(value, "case %s has no prompt%s", c.ID, hint)
	}
	c.Expected = r.text(value.Get("expected_output"))
	c.Statements = slices.Concat(r.statements(value, "assertions", c.ID), r.statements(value, "expectations", c.ID))
	r.scorers(&c, value.Get("scorers"))
	r.checks(&c, value.Get("checks"))
	if expected := value.Get("expected_output"); len(c.Statements)+len(c.Checks) == 0 && c.Expected != "" {
		c.Statements = []Statement{{Text: c.Expected, Line: r.line(expected)}}
	}
	c.Files = r.texts(value.Get("files"), "files", c.ID, "path")
	c.Silent = isSilent(value)
	if len(c.Statements)+len(c.Checks) == 0 && !c.Silent {
		hint := ""
		if len(unread) > 0 {
			hint = ", or rename one of its keys " + strings.Join(unread[:min(len(unread), 12)], ", ")
		}
		r.wrong(value, "case %s has nothing to judge by; add assertions, checks or an expected_output%s", c.ID, hint)
	}
	return c
}

// id returns an id, which is a number or a text.
func (r *reader) id(value jsontape.Value, number int) string {
	switch value.Kind() {
	case jsontape.String:
		if text := strings.TrimSpace(r.text(value)); text != "" {
			return text
		}
	case jsontape.Number:
		start, end := value.Span()
		return string(r.source[start:end])
	}
	r.wrong(value, "case %d: the id must be a number or a word", number)
	return strconv.Itoa(number)
}

func (r *reader) statements(value jsontape.Value, key, id string) []Statement {
	return r.texts(value.Get(key), key, id, "text")
}

// texts reads a list of texts, or of objects that have one under a name.
func (r *reader) texts(list jsontape.Value, key, id, name string) []Statement {
	switch list.Kind() {
	case jsontape.Missing, jsontape.Null:
		return nil
	case jsontape.String:
		return []Statement{{Text: r.text(list), Line: r.line(list)}}
	case jsontape.Array:
	default:
		r.wrong(list, "case %s: %s is not a list of texts", id, key)
		return nil
	}
	var found []Statement
	for one := range list.Elements() {
		text := one
		if one.Kind() == jsontape.Object {
			if one.Get("type").Exists() && (one.Get("value").Exists() || one.Get("pattern").Exists() ||
				one.Get("patterns").Exists()) {
				r.note(one, key+" with a type and a value are read as sentences; code decides what is in checks")
			}
			for _, known := range append([]string{name}, statementKeys...) {
				if text = one.Get(known); text.Exists() {
					break
				}
			}
		}
		if text.Kind() != jsontape.String || strings.TrimSpace(text.Text()) == "" {
			r.wrong(one, "case %s: %s: want a text, or an object with a %s", id, key, name)
			continue
		}
		sentence := strings.TrimSpace(r.text(text))
		found = append(found, Statement{Text: sentence, Line: r.line(text), Conduct: r.conduct(one, id, sentence)})
	}
	return found
}

// statementKeys are the names under which objects have their statement, beside that of the list.
var statementKeys = []string{"assertion", "expectation", "statement", "description", "criterion", "check"}

// conduct reports whether a statement is about what the agent does: as it says, or as it reads.
func (r *reader) conduct(value jsontape.Value, id, sentence string) bool {
	about := value.Get("about")
	switch {
	case !about.Exists():
		return isConduct(sentence)
	case about.Text() != aboutConduct && about.Text() != aboutResult:
		r.wrong(about, `case %s: about must be %s or %s`, id, aboutConduct, aboutResult)
	}
	return about.Text() == aboutConduct
}

// scorers reads scorers: a regular expression is a check, what a model judges a statement.
func (r *reader) scorers(c *Case, list jsontape.Value) {
	if list.Exists() && list.Kind() != jsontape.Array {
		r.wrong(list, `case %s: scorers is not a list; write [{"type": "regex", "pattern": "…"}]`, c.ID)
	}
	for one := range list.Elements() {
		kind := one.TextOf("type")
		switch kind {
		case "regex":
			pattern := r.text(one.Get("pattern"))
			if _, err := regexp.Compile(pattern); err != nil || pattern == "" {
				r.wrong(one, "case %s: scorers: %q is not a regular expression (RE2)", c.ID, pattern)
				continue
			}
			check, _ := json.Marshal(map[string]string{"matches": pattern, "name": r.text(one.Get("name"))})
			c.Checks = append(c.Checks, Check{check, r.line(one)})
		case "llm_judge":
			criterion := r.text(one.Get("criterion"))
			if strings.TrimSpace(criterion) == "" {
				r.wrong(one, "case %s: scorers: the criterion is missing", c.ID)
				continue
			}
			c.Statements = append(c.Statements, Statement{
				Text:    criterion,
				Line:    r.line(one),
				Conduct: r.conduct(one, c.ID, criterion),
			})
		default:
			r.wrong(one, "case %s: scorers: the type is regex or llm_judge, not %q", c.ID, kind)
		}
	}
}

// checks keeps ready checks; whoever applies them knows their kinds.
func (r *reader) checks(c *Case, list jsontape.Value) {
	if list.Exists() && list.Kind() != jsontape.Array {
		r.wrong(list, `case %s: checks is not a list; write [{"contains": ["…"]}, {"matches": "…"}]`, c.ID)
	}
	for one := range list.Elements() {
		if one.Kind() != jsontape.Object {
			r.wrong(one, `case %s: a check is an object, such as {"contains": ["…"]}`, c.ID)
			continue
		}
		start, end := one.Span()
		c.Checks = append(c.Checks, Check{slices.Clone(r.source[start:end]), r.line(one)})
	}
}

// silentWords are how people mark cases in which the skill should not be used.
var silentWords = []string{
	"non-trigger", "non_trigger", "nontrigger", "no-trigger", "should-not-trigger", "should_not_trigger",
	"restraint", "anti-trigger", "anti_trigger",
}

func isSilent(value jsontape.Value) bool {
	if trigger := value.Get("should_trigger"); trigger.Exists() {
		return trigger.Kind() == jsontape.False
	}
	if value.Get("negative").Kind() == jsontape.True {
		return true
	}
	for _, key := range []string{"category", "type", "prompt_type", "kind"} {
		word := strings.ToLower(strings.TrimSpace(value.TextOf(key)))
		if slices.Contains(silentWords, word) || strings.HasPrefix(word, "negative") {
			return true
		}
	}
	return false
}
