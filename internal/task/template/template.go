// Package template fills the columns of a sample into the texts of a dataset.
package template

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/lazyregexp"
)

// Template is text with columns of a sample in double braces: {{name}}, {{name.member}}, or
// {{name | letters}} for a list as lettered lines. {{"text"}} is the text itself, which may have
// braces.
type Template struct{ parts []part }

type part struct {
	text    string   // as it is, where there is no column
	column  []string // the path of a column
	letters bool
}

var columnName = lazyregexp.New(`^([A-Za-z_][\w-]*(?:\.[\w-]+)*)(?:\s*\|\s*(\w+))?$`)

// Error says what is wrong at an offset of a template.
type Error struct {
	Offset int
	msg    string
}

func (e *Error) Error() string { return e.msg }

// Parse reads a template.
func Parse(source string) (*Template, error) {
	t := &Template{}
	for at := 0; at < len(source); {
		begin := strings.Index(source[at:], "{{")
		if begin < 0 {
			t.parts = append(t.parts, part{text: source[at:]})
			break
		}
		if begin > 0 {
			t.parts = append(t.parts, part{text: source[at : at+begin]})
		}
		at += begin
		length := strings.Index(source[at:], "}}")
		if length < 0 {
			return nil, &Error{at, "{{ is not closed; to write two braces, write {{\"{{\"}}"}
		}
		one, err := parsePart(strings.TrimSpace(source[at+2 : at+length]))
		if err != nil {
			return nil, &Error{at, err.Error()}
		}
		t.parts = append(t.parts, one)
		at += length + 2
	}
	return t, nil
}

func parsePart(inside string) (part, error) {
	var literal string
	if strings.HasPrefix(inside, `"`) && json.Unmarshal([]byte(inside), &literal) == nil {
		return part{text: literal}, nil
	}
	match := columnName.FindStringSubmatch(inside)
	switch {
	case match == nil:
		return part{}, fmt.Errorf("{{%s}} does not name a column: write {{column}}", inside)
	case match[2] != "" && match[2] != "letters":
		return part{}, fmt.Errorf("there is no filter %s: the only one is letters, for a list of choices",
			match[2])
	}
	return part{column: strings.Split(match[1], "."), letters: match[2] != ""}, nil
}

// Unknown returns the first column that is not among those given.
func (t *Template) Unknown(columns []string) string {
	for _, p := range t.parts {
		if p.column != nil && !slices.Contains(columns, p.column[0]) {
			return p.column[0]
		}
	}
	return ""
}

// Fixed reports whether the template is the same text for all samples.
func (t *Template) Fixed() bool {
	return !slices.ContainsFunc(t.parts, func(p part) bool { return p.column != nil })
}

// Fill returns the text for a sample. Every value goes through quote, if there is one.
func (t *Template) Fill(columns map[string]any, quote func(string) string) (string, error) {
	var out strings.Builder
	for _, p := range t.parts {
		if p.column == nil {
			out.WriteString(p.text)
			continue
		}
		value, err := lookUp(columns, p.column)
		if err != nil {
			return "", err
		}
		text := Text(value)
		if p.letters {
			if text, err = lettered(value); err != nil {
				return "", fmt.Errorf("column %s: %w", strings.Join(p.column, "."), err)
			}
		}
		if quote != nil {
			text = quote(text)
		}
		out.WriteString(text)
	}
	return out.String(), nil
}

// List returns the texts for a sample: the elements of a list if the template is only such a
// column, else the one text.
func (t *Template) List(columns map[string]any) ([]string, error) {
	if len(t.parts) == 1 && t.parts[0].column != nil && !t.parts[0].letters {
		value, err := lookUp(columns, t.parts[0].column)
		if err != nil {
			return nil, err
		}
		if several, ok := value.([]any); ok {
			var texts []string
			for _, one := range several {
				texts = append(texts, Text(one))
			}
			return texts, nil
		}
	}
	text, err := t.Fill(columns, nil)
	return []string{text}, err
}

func lookUp(columns map[string]any, path []string) (any, error) {
	var value any = columns
	for i, name := range path {
		members, ok := value.(map[string]any)
		if ok {
			value, ok = members[name]
		}
		if !ok {
			return nil, fmt.Errorf("there is no column %s", strings.Join(path[:i+1], "."))
		}
	}
	return value, nil
}

// Text returns a value as it is in a prompt: text unchanged, everything else as JSON.
func Text(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	case json.Number:
		return value.String()
	}
	text, err := jsonenc.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

// maxChoices is the number of letters that choices can have.
const maxChoices = 26

// lettered writes a list as lines "A) first", "B) second".
func lettered(value any) (string, error) {
	choices, ok := value.([]any)
	if !ok || len(choices) == 0 || len(choices) > maxChoices {
		return "", fmt.Errorf("want a list of 1 to %d choices", maxChoices)
	}
	lines := make([]string, len(choices))
	for i, choice := range choices {
		lines[i] = string(rune('A'+i)) + ") " + Text(choice)
	}
	return strings.Join(lines, "\n"), nil
}
