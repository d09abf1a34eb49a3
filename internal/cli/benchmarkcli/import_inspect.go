package benchmarkcli

import (
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/task"
)

// inspectScorers are those of Inspect's scorers that checks can stand for.
var inspectScorers = []string{"match", "includes", "exact", "answer", "choice", "model_graded_qa", "model_graded_fact"}

// inspect reads a file of Inspect's samples.
func (m *imported) inspect(file, scorer string) error {
	rows, err := task.ReadRows(file)
	if err != nil {
		return err
	}
	choices := false
	for i, row := range rows {
		sample := map[string]any{
			"id":     strconv.Itoa(i + 1),
			"input":  m.inspectInput(row["input"]),
			"target": row["target"],
		}
		for name, value := range row {
			switch name {
			case "id", "metadata":
				sample[name] = value
			case "choices":
				sample[name], choices = value, true
			case "input", "target":
			case "files", "setup", "sandbox":
				m.lose("%s of samples: add the files, a preflight hook or an image to a task directory", name)
			default:
				m.lose("the column %s", name)
			}
		}
		if sample["target"] == nil {
			sample["target"] = ""
		}
		m.samples = append(m.samples, sample)
	}
	if scorer == "" && choices {
		scorer = "choice"
	}
	m.inspectScorer(scorer)
	return nil
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
		text, isText := fields["content"].(string)
		switch {
		case fields["role"] != "user":
			m.lose("messages of the role %v: set a system prompt with --prompt", fields["role"])
		case !isText:
			m.lose("images and other parts of messages")
		default:
			said = append(said, text)
		}
	}
	return strings.Join(said, "\n\n")
}

// inspectScorer chooses the check that stands for a scorer.
func (m *imported) inspectScorer(scorer string) {
	m.prompt, m.reference = "{{input}}", "{{target}}"
	check := map[string]any{"name": scorer}
	switch scorer {
	case "choice":
		m.prompt = "{{input}}\n\n{{choices | letters}}\n\nThe last line of your answer is ANSWER: and the letter of your choice."
		m.reference = "ANSWER: {{target}}"
		check["choice"] = "{{target}}"
	case "exact":
		check["equals"], check["as"] = "{{target}}", task.CompareNormalised
	case "match":
		check["matches"], check["ignoreCase"] = `{{target}}\W*$`, true
	case "answer":
		check["matches"], check["equals"], check["ignoreCase"] = `ANSWER:\s*(.*\S)`, "{{target}}", true
		check["as"], m.reference = task.CompareNormalised, "ANSWER: {{target}}"
	case "model_graded_qa", "model_graded_fact":
		delete(check, "name")
		m.reference = ""
		check["rubric"] = "The answer agrees with this one, or meets this criterion: {{target}}"
	default:
		check["name"], check["containsAny"], check["ignoreCase"] = "includes", []string{"{{target}}"}, true
	}
	m.grade = append(m.grade, check)
}
