package task

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/task/template"
)

// The kinds of checks of an answer.
const (
	CheckEquals       = "equals"
	CheckContains     = "contains"    // all of them
	CheckContainsAny  = "containsAny" // one of them
	CheckExcludes     = "excludes"    // none of them
	CheckMatches      = "matches"     // a regular expression, whose group equals what is wanted, if anything is
	CheckSchema       = "schema"      // of JSON
	CheckChoice       = "choice"
	CheckCommand      = "command"
	CheckMaxCost      = "maxCostUsd"
	CheckMaxSeconds   = "maxSeconds"
	CheckMaxTurns     = "maxTurns"
	CheckMaxToolCalls = "maxToolCalls"
	CheckUsedTool     = "usedTool"
	CheckDidNotRun    = "didNotRun"
	CheckTrace        = "trace"
	CheckExists       = "exists"
	// CheckUnopened is that of cases in which a skill should not be used; nobody writes it.
	CheckUnopened = "unopened"
	checkRubric   = "rubric" // which the judge decides
)

// The ways to compare answers.
const (
	compareStrict     = "strict"
	CompareNormalised = "normalised"
	CompareNumber     = "number"
	CompareWords      = "words"
	CompareEnding     = "ending"
)

// AnswerCheck is one check of an answer, or of how the agent came to it. It becomes one row, except
// for a command, which makes its own rows.
type AnswerCheck struct {
	Name   string
	Kind   string
	Gate   bool
	Weight float64
	// Not turns the check round.
	Not bool
	// Want are the texts that the answer is compared with.
	Want       []string
	As         string // how to compare: strict, normalised, number or words
	Tolerance  float64
	IgnoreCase bool
	// Pattern is a regular expression of the answer or of commands, a query, or the name of a tool.
	Pattern string
	// File is the file of the working directory that is looked at in place of the answer.
	File   string `json:",omitempty"`
	Schema json.RawMessage
	// Choices are the texts of the choices; empty: only letters are known.
	Choices []string
	Limit   float64 // of cost, seconds, turns or calls
	Command []string
	Files   []string // that the command names
}

// checkFile is a check as people write it: one of the kinds, which are marked, and how it counts.
type checkFile struct {
	Equals       *string  `yaml:"equals" kind:"true" doc:"The answer is this text, or one of the list that {{column}} is. With matches: the first group of the expression is."`
	As           string   `yaml:"as" doc:"How equals compares. strict: white space around the answer does not count, everything else does; the default. normalised: neither case, white space nor punctuation around it counts. number: by value. words: neither case, punctuation, the articles a, an and the, nor the form of numbers counts. ending: the answer ends with the text; neither case nor ASCII punctuation around either counts." enum:"strict,normalised,number,words,ending"`
	Tolerance    float64  `yaml:"tolerance" doc:"How far a number may be off." min:"0"`
	Contains     []string `yaml:"contains" kind:"true" doc:"The answer contains all of these."`
	ContainsAny  []string `yaml:"containsAny" kind:"true" doc:"The answer contains at least one of these."`
	Excludes     []string `yaml:"excludes" kind:"true" doc:"The answer contains none of these."`
	IgnoreCase   bool     `yaml:"ignoreCase" doc:"Whether contains, containsAny, excludes and matches ignore case."`
	Matches      string   `yaml:"matches" kind:"true" doc:"Regular expression (RE2) that the answer matches; columns in it stand for themselves."`
	Schema       any      `yaml:"schema" kind:"true" doc:"JSON Schema that the answer, which is JSON, conforms to: the schema itself, or a file of this directory."`
	Choice       *string  `yaml:"choice" kind:"true" doc:"The answer names this choice: its letter, or its text. Of several letters, such as A,C, it names all and no other."`
	Choices      string   `yaml:"choices" doc:"Column that has the list of choices; default: choices, where there is one."`
	Command      []string `yaml:"command" kind:"true" doc:"Command that gets the sample and the answer as JSON on its standard input and prints rows. It runs in a copy of the working directory; words that name files of this directory become their paths."`
	MaxCostUSD   *float64 `yaml:"maxCostUsd" kind:"true" doc:"The agent cost at most this." min:"0"`
	MaxSeconds   *float64 `yaml:"maxSeconds" kind:"true" doc:"The agent took at most this long." min:"0"`
	MaxTurns     *float64 `yaml:"maxTurns" kind:"true" doc:"The agent's model replied at most this often." min:"0"`
	MaxToolCalls *float64 `yaml:"maxToolCalls" kind:"true" doc:"The agent called tools at most this often." min:"0"`
	UsedTool     string   `yaml:"usedTool" kind:"true" doc:"The agent called this tool."`
	DidNotRun    string   `yaml:"didNotRun" kind:"true" doc:"No command that the agent ran matches this regular expression."`
	Trace        string   `yaml:"trace" kind:"true" doc:"Query of the agent's events (JMESPath) that gives something, as fit-trace assert --unwrap --query has it."`
	Exists       string   `yaml:"exists" kind:"true" doc:"The agent left this file in its working directory."`
	Rubric       string   `yaml:"rubric" kind:"true" doc:"What the judge holds the answer against, once all other checks pass. It may say that the answer cannot be judged: then there is no verdict."`
	File         string   `yaml:"file" doc:"File of the working directory that the check looks at in place of the answer; for equals, contains, containsAny, excludes, matches and schema."`
	Name         string   `yaml:"name" doc:"Name of the row; default: the kind of the check."`
	Not          bool     `yaml:"not" doc:"Whether the check must fail."`
	Gate         bool     `yaml:"gate" doc:"Whether the check decides alone and has no weight."`
	Weight       *float64 `yaml:"weight" doc:"Weight in the score; 0 shows the row and does not count it. Default 1." min:"0"`
}

// checkTemplate is a check whose texts are not filled in yet.
type checkTemplate struct {
	AnswerCheck
	want    []*template.Template
	pattern *template.Template
	rubric  *template.Template
	choices string
	at      []string
}

// kinds returns the kinds that are written down; exactly one must be.
func (f *checkFile) kinds() []string {
	var kinds []string
	written := reflect.ValueOf(*f)
	for i := range written.NumField() {
		tag := written.Type().Field(i).Tag
		kind := tag.Get("yaml")
		if tag.Get("kind") != "" && !written.Field(i).IsZero() && (kind != CheckEquals || f.Matches == "") {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// compile checks what was written and parses its templates.
func (d *datasetLoader) compile(f checkFile, at []string) (checkTemplate, error) {
	kinds := f.kinds()
	if len(kinds) != 1 {
		return checkTemplate{}, d.where.wrong("family.yaml", at, "a check is of one kind, not of %d (%s); write "+
			"equals, contains, matches, schema, choice, command, rubric or another",
			len(kinds), strings.Join(kinds, ", "))
	}
	c := checkTemplate{choices: f.Choices, at: append(slices.Clone(at), kinds[0])}
	c.AnswerCheck = AnswerCheck{
		Name:       cmp.Or(f.Name, kinds[0]),
		Kind:       kinds[0],
		Gate:       f.Gate,
		Weight:     1,
		Not:        f.Not,
		As:         cmp.Or(f.As, compareStrict),
		Tolerance:  f.Tolerance,
		IgnoreCase: f.IgnoreCase,
		Command:    f.Command,
		File:       cmp.Or(f.File, f.Exists),
	}
	if f.Weight != nil {
		c.Weight = *f.Weight
	}
	for _, limit := range []*float64{f.MaxCostUSD, f.MaxSeconds, f.MaxTurns, f.MaxToolCalls} {
		if limit != nil {
			c.Limit = *limit
		}
	}
	if err := c.contradiction(f); err != nil {
		return c, d.where.wrong("family.yaml", at, "%v", err)
	}
	if err := errors.Join(d.compileTexts(&c, f), d.compileSchema(&c, f)); err != nil {
		return c, err
	}
	for i, word := range c.Command {
		if name, ok := d.ownFile(word); ok {
			c.Command = slices.Clone(c.Command)
			c.Command[i], c.Files = name, append(c.Files, name)
		}
	}
	return c, nil
}

// contradiction finds settings that do not apply to the kind of check.
func (c *checkTemplate) contradiction(f checkFile) error {
	compares := f.Equals != nil
	switch {
	case f.As != "" && !compares:
		return errors.New("as applies to equals, which is missing")
	case f.Tolerance != 0 && f.As != CompareNumber:
		return errors.New("tolerance needs as: number")
	case f.IgnoreCase && !c.searches() && c.Kind != CheckMatches:
		return errors.New("ignoreCase applies to contains, containsAny, excludes and matches; for equals use as: " +
			"normalised")
	case f.Choices != "" && c.Kind != CheckChoice:
		return errors.New("choices applies to choice, which is missing")
	case f.File != "" && !c.readsText():
		return errors.New("file applies to equals, contains, containsAny, excludes, matches and schema")
	case c.File != "" && !filepath.IsLocal(filepath.FromSlash(c.File)):
		return fmt.Errorf("%s is not a path inside the working directory", c.File)
	case f.Gate && f.Weight != nil:
		return errors.New("a gate has no weight")
	case c.Kind == checkRubric && (f.Weight != nil || f.Not || f.Gate):
		return errors.New("the judge decides after all other checks: a rubric has neither weight, not nor gate")
	case c.Kind == CheckCommand && (len(f.Command) == 0 || f.Not || f.Gate || f.Weight != nil):
		return errors.New("a command makes its own rows: it has words, and neither weight, not nor gate")
	}
	return nil
}

// compileTexts parses the templates of a check.
func (d *datasetLoader) compileTexts(c *checkTemplate, f checkFile) error {
	parse := func(source string) *template.Template { return d.template(source, c.at...) }
	texts := slices.Concat(f.Contains, f.ContainsAny, f.Excludes)
	for _, one := range []*string{f.Equals, f.Choice} {
		if one != nil {
			texts = append(texts, *one)
		}
	}
	for _, text := range texts {
		c.want = append(c.want, parse(text))
	}
	if len(texts) == 0 && c.searches() {
		return d.where.wrong("family.yaml", c.at, "the list is empty")
	}
	if f.Rubric != "" {
		c.rubric = parse(f.Rubric)
	}
	c.Pattern = cmp.Or(f.UsedTool, f.Trace, f.DidNotRun)
	var err error
	if f.Matches != "" {
		if c.pattern = parse(f.Matches); c.pattern.Fixed() {
			err = compilePattern(f.Matches, f.Equals != nil)
		}
	} else {
		err = compilePattern(f.DidNotRun, false)
	}
	if err != nil {
		return d.where.wrong("family.yaml", c.at, "%v", err)
	}
	return nil
}

func compilePattern(pattern string, needsGroup bool) error {
	compiled, err := regexp.Compile(pattern)
	if err == nil && needsGroup && compiled.NumSubexp() == 0 {
		err = errors.New("equals compares the first group of the expression, which has none: put parentheses " +
			"around what to compare")
	}
	return err
}

// searches reports whether the check looks for texts in the answer.
func (c *AnswerCheck) searches() bool {
	return slices.Contains([]string{CheckContains, CheckContainsAny, CheckExcludes}, c.Kind)
}

// readsText reports whether the check is about a text: the answer, or a file.
func (c *AnswerCheck) readsText() bool {
	return c.searches() || slices.Contains([]string{CheckEquals, CheckMatches, CheckSchema}, c.Kind)
}

// checkDecides rejects a check that passes any answer, or none.
func (c *AnswerCheck) checkDecides() error {
	compares := c.Kind == CheckEquals || c.Kind == CheckMatches
	if len(c.Want) == 0 && (c.searches() || c.Kind == CheckEquals || c.Kind == CheckChoice) {
		return errors.New("there is nothing to compare with: the list is empty")
	}
	for _, want := range c.Want {
		switch {
		case c.searches() && want == "":
			return errors.New("the text is empty, which every answer contains")
		case compares && c.As == CompareNumber && !strings.ContainsAny(want, "0123456789"):
			return fmt.Errorf("%q is not a number, which as: number compares", want)
		}
	}
	return nil
}

// compileSchema reads the JSON Schema of a check: written down, or in a file.
func (d *datasetLoader) compileSchema(c *checkTemplate, f checkFile) error {
	if f.Schema == nil {
		return nil
	}
	if name, isFile := f.Schema.(string); isFile {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return d.where.wrong("family.yaml", c.at, "%s is not a file of this directory", name)
		}
		content, ok := d.text(name)
		if !ok {
			return d.where.wrong("family.yaml", c.at, "%s is not a file of this directory", name)
		}
		c.Schema = json.RawMessage(content)
	} else {
		content, err := json.Marshal(f.Schema)
		if err != nil {
			return d.where.wrong("family.yaml", c.at, "%v", err)
		}
		c.Schema = content
	}
	if _, err := document.CompileSchema(c.Name, c.Schema); err != nil {
		return d.where.wrong("family.yaml", c.at, "%v", err)
	}
	return nil
}
