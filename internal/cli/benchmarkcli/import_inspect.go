package benchmarkcli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/task"
)

// inspectScorers are those of Inspect's scorers that checks can stand for.
var inspectScorers = []string{"match", "includes", "exact", "answer", "choice", "model_graded_qa", "model_graded_fact"}

// inspectFields are the parts of a sample that may be in columns of other names.
var inspectFields = []string{"input", "target", "choices", "id", "metadata"}

// inspect reads a file of Inspect's samples.
func (m *imported) inspect(file string, opts *importOptions) error {
	columns := map[string]string{} // what they are by their name
	for _, field := range inspectFields {
		columns[cmp.Or(opts.fields[field], field)] = field
	}
	for field := range opts.fields {
		if !slices.Contains(inspectFields, field) {
			return fmt.Errorf("--field: %q is none of %s", field, strings.Join(inspectFields, ", "))
		}
	}
	rows, err := task.ReadRows(file)
	if err != nil {
		return err
	}
	scorer := opts.scorer.Value
	for i, row := range rows {
		sample, err := m.inspectSample(row, columns)
		if err != nil {
			return fmt.Errorf("%s: sample %d: %w", file, i+1, err)
		}
		if sample["id"] == nil {
			sample["id"] = strconv.Itoa(i + 1)
		}
		if sample["choices"] != nil {
			scorer = cmp.Or(scorer, "choice")
		}
		m.samples = append(m.samples, sample)
	}
	m.inspectScorer(cmp.Or(scorer, "includes"))
	return nil
}

func (m *imported) inspectSample(row map[string]any, columns map[string]string) (map[string]any, error) {
	sample := map[string]any{"target": []string{""}}
	for _, name := range slices.Sorted(maps.Keys(row)) {
		field, value := columns[name], row[name]
		switch {
		case field == "input":
			sample[field] = m.inspectInput(value)
		case slices.Contains([]string{"files", "setup", "sandbox"}, name):
			m.lose("%s of samples: add the files, a preflight hook or an image to a task directory", name)
		case field == "":
			m.lose("the column %s", name)
		case value == nil:
		case field == "target":
			sample[field] = inspectTexts(value)
		case field == "choices":
			if choices := inspectChoices(value); len(choices) > 0 {
				sample[field] = choices
			}
		default:
			sample[field] = value
		}
	}
	if text, _ := sample["input"].(string); strings.TrimSpace(text) == "" {
		return nil, fmt.Errorf("there is no input; it has %s: name the column with --field input=COLUMN",
			strings.Join(slices.Sorted(maps.Keys(row)), ", "))
	}
	return sample, nil
}

// inspectInput is the text of an input: the text itself, or what the user says in a list of
// messages.
func (m *imported) inspectInput(input any) string {
	messages, ok := input.([]any)
	if !ok {
		text, _ := input.(string)
		return text
	}
	var said []string
	for _, message := range messages {
		fields, _ := message.(map[string]any)
		if fields["role"] != "user" {
			m.lose("messages of the role %v: set a system prompt with --prompt", fields["role"])
			continue
		}
		text, isText := fields["content"].(string)
		if !isText {
			text = m.inspectParts(fields["content"])
		}
		said = append(said, text)
	}
	return strings.Join(said, "\n\n")
}

// inspectParts is the text among the parts of a message.
func (m *imported) inspectParts(content any) string {
	var texts []string
	parts, _ := content.([]any)
	for _, part := range parts {
		fields, _ := part.(map[string]any)
		if text, ok := fields["text"].(string); ok && fields["type"] == "text" {
			texts = append(texts, text)
		} else {
			m.lose("images and other parts of messages that are not text")
		}
	}
	return strings.Join(texts, "\n")
}

// inspectTexts are the texts of a value, or of the elements of a list.
func inspectTexts(value any) []string {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	texts := []string{}
	for _, one := range list {
		switch one := one.(type) {
		case string:
			texts = append(texts, one)
		case bool: // as Python writes it
			texts = append(texts, map[bool]string{true: "True", false: "False"}[one])
		case json.Number:
			texts = append(texts, one.String())
		default:
			texts = append(texts, fmt.Sprint(one))
		}
	}
	return texts
}

// inspectChoices are the choices of a list, or of a text that separates them by commas or blanks.
func inspectChoices(value any) []string {
	choices := inspectTexts(value)
	if text, ok := value.(string); ok {
		if choices = strings.Split(text, ","); len(choices) == 1 {
			choices = strings.Fields(text)
		}
		for i := range choices {
			choices[i] = strings.TrimSpace(choices[i])
		}
	}
	return slices.DeleteFunc(choices, func(choice string) bool { return strings.TrimSpace(choice) == "" })
}

// inspectScorer chooses the check that stands for a scorer.
func (m *imported) inspectScorer(scorer string) {
	m.prompt, m.reference = "{{input}}", "{{reference}}"
	check := map[string]any{"name": scorer}
	switch scorer {
	case "choice":
		m.prompt = "{{input}}\n\n{{choices | letters}}\n\nThe last line of your answer is ANSWER: and the letter of " +
			"your choice, or the letters if several are right."
		check["choice"] = "{{target}}"
	case "exact":
		check["equals"], check["as"] = "{{target}}", task.CompareWords
	case "model_graded_qa", "model_graded_fact":
		delete(check, "name")
		m.reference = ""
		check["rubric"] = "The answer agrees with this one, or meets this criterion: {{target}}"
	case "includes":
		check["containsAny"], check["ignoreCase"] = []string{"{{target}}"}, true
	case "match":
		check["equals"], check["as"] = "{{target}}", task.CompareEnding
	}
	if len(check) > 1 || m.reference == "" {
		m.grade = append(m.grade, check)
	}
	for _, sample := range m.samples {
		targets, _ := sample["target"].([]string)
		switch scorer {
		case "choice":
			choices, _ := sample["choices"].([]string)
			sample["target"], sample["reference"] = inspectLetters(targets, choices)
			continue
		case "answer":
			sample["grade"] = answerLine(targets)
			sample["reference"] = "ANSWER: " + targets[0]
		case "model_graded_qa", "model_graded_fact":
			sample["target"] = strings.Join(targets, ", ")
			continue
		}
		if sample["target"] = targets; sample["reference"] == nil {
			sample["reference"] = targets[0]
		}
		if len(targets) == 1 {
			sample["target"] = targets[0]
		}
	}
}

// answerLine is the check of an answer whose last line is ANSWER: and any of some texts.
func answerLine(texts []string) []map[string]any {
	var quoted []string
	for _, text := range texts {
		quoted = append(quoted, regexp.QuoteMeta(text))
	}
	return []map[string]any{{"matches": `(?i)ANSWER\s*:\s*(?:` + strings.Join(quoted, "|") + `)(?:\n\s*)?$`}}
}

// inspectLetters is a target that names choices by their letters, all of which are right, and the
// answer that names them. A target of another form stays as it is.
func inspectLetters(targets, choices []string) (target, answer string) {
	text := strings.Join(targets, "")
	var letters []string
	for _, letter := range strings.ToUpper(strings.NewReplacer(",", "", " ", "").Replace(text)) {
		if at := int(letter - 'A'); at < 0 || at >= len(choices) {
			return text, "ANSWER: " + text
		}
		letters = append(letters, string(letter))
	}
	target = strings.Join(letters, ",")
	answer = "ANSWER: " + target
	if len(letters) == 1 && slices.Contains(choices, target) { // the text of a choice comes first
		target = choices[target[0]-'A']
	}
	return target, answer
}
