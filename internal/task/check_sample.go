package task

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/task/template"
)

// sampleChecks fills in the checks of a sample: those of the family, then its own. It returns the
// rubrics for the judge.
func (d *datasetLoader) sampleChecks(sample *Sample) (rubric string, err error) {
	checks := d.checks
	if own, ok := sample.Columns[gradeColumn]; ok {
		more, err := d.ownChecks(own)
		if err != nil {
			return "", fmt.Errorf("column %s: %w", gradeColumn, err)
		}
		checks = append(slices.Clone(checks), more...)
	}
	return sample.fillIn(checks)
}

// fillIn fills in checks for a sample.
func (sample *Sample) fillIn(checks []checkTemplate) (rubric string, err error) {
	var rubrics []string
	names := map[string]int{}
	for _, one := range checks {
		check, text, err := one.fillIn(sample.Columns)
		if err != nil {
			return "", fmt.Errorf("%s of grade: %w", one.Kind, err)
		}
		if text != "" {
			rubrics = append(rubrics, text)
			continue
		}
		if names[check.Name]++; names[check.Name] > 1 { // rows have distinct names
			check.Name += "-" + strconv.Itoa(names[check.Name])
		}
		sample.Checks = append(sample.Checks, check)
	}
	return strings.Join(rubrics, "\n\n"), nil
}

// gradeColumn is the column with a sample's own checks.
const gradeColumn = "grade"

// ownChecks reads the checks in a column: a list, or text that is one.
func (d *datasetLoader) ownChecks(value any) ([]checkTemplate, error) {
	text := strings.TrimSpace(template.Text(value))
	if text == "" {
		return nil, nil
	}
	doc, err := document.Parse(gradeColumn, []byte(text))
	if err != nil {
		return nil, err
	}
	// The mistakes of a sample are at its line, wherever they are in the text of the column.
	inner := &datasetLoader{loader: &loader{
		real:   d.real,
		root:   d.root,
		family: d.family,
		where:  settingsFile{doc},
	}}
	var files []checkFile
	if err := errors.Join(doc.Conforms(files), doc.Decode(&files)); err != nil {
		return nil, withoutPlace(err)
	}
	var checks []checkTemplate
	for i, file := range files {
		check, err := inner.compile(file, []string{strconv.Itoa(i)})
		if err = errors.Join(err, errors.Join(inner.problems...)); err != nil {
			return nil, withoutPlace(err)
		}
		checks = append(checks, check)
	}
	return checks, nil
}

// withoutPlace returns an error without its positions, which would mislead for a text inside
// another file.
func withoutPlace(err error) error {
	if placed, ok := errors.AsType[*document.Error](err); ok {
		return errors.New(placed.Msg)
	}
	return err
}

// fillIn fills in the texts of a check. A rubric is text for the judge.
func (c *checkTemplate) fillIn(columns map[string]any) (check AnswerCheck, rubric string, err error) {
	check = c.AnswerCheck
	if c.rubric != nil {
		rubric, err = c.rubric.Fill(columns, nil)
		return check, rubric, err
	}
	for _, one := range c.want {
		texts, err := one.List(columns)
		if err != nil {
			return check, "", err
		}
		check.Want = append(check.Want, texts...)
	}
	if c.pattern != nil {
		if check.Pattern, err = c.pattern.Fill(columns, regexp.QuoteMeta); err != nil {
			return check, "", err
		}
		if err := compilePattern(check.Pattern, len(c.want) > 0); err != nil {
			return check, "", err
		}
	}
	if err := check.checkDecides(); err != nil {
		return check, "", err
	}
	if check.Kind == CheckChoice {
		err = check.takeChoices(c.choices, columns)
	}
	return check, "", err
}

// takeChoices finds the list of choices of a sample, and turns what is wanted into letters.
func (c *AnswerCheck) takeChoices(column string, columns map[string]any) error {
	value, there := columns[cmp.Or(column, "choices")]
	if !there && column != "" {
		return fmt.Errorf("there is no column %s", column)
	}
	list, isList := value.([]any)
	if there && !isList {
		return fmt.Errorf("column %s: choices are a list", cmp.Or(column, "choices"))
	}
	for _, choice := range list {
		c.Choices = append(c.Choices, template.Text(choice))
	}
	for i, want := range c.Want {
		if at := slices.Index(c.Choices, want); at >= 0 {
			c.Want[i] = string(rune('A' + at))
			continue
		}
		letters, ok := c.letters(want)
		if !ok {
			return fmt.Errorf("%q is neither the letter nor the text of a choice", want)
		}
		c.Want[i] = letters
	}
	return nil
}

// letters returns the letters of choices, in order. Several are separated by commas.
func (c *AnswerCheck) letters(text string) (letters string, ok bool) {
	last := "Z"
	if len(c.Choices) > 0 {
		last = string(rune('A' + len(c.Choices) - 1))
	}
	var all []string
	for letter := range strings.SplitSeq(strings.ToUpper(text), ",") {
		letter = strings.TrimSpace(letter)
		if len(letter) != 1 || letter < "A" || letter > last {
			return "", false
		}
		all = append(all, letter)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ""), true
}

// rubricTemplate returns the prompt for the judge of a rubric.
func rubricTemplate(rubric string) string {
	return `An agent was asked this:

{{AGENT_INSTRUCTIONS}}

It answered:

{{AGENT_ANSWER}}

Judge the answer, and nothing else, by this rubric:

` + rubric + `

Conclude with success if the answer meets the rubric, and with failure if it does not; say in the summary why. If the rubric does not let you decide, or what it asks about cannot be known from
here, conclude with failure and begin the summary with the word UNSCORED: then the answer counts neither as right nor as wrong.
`
}
