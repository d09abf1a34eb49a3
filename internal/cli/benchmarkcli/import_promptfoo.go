package benchmarkcli

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/task"
)

// promptfooConfig is what is read of a promptfooconfig.yaml.
type promptfooConfig struct {
	Description string          `json:"description"`
	Prompts     json.RawMessage `json:"prompts"`
	Tests       json.RawMessage `json:"tests"`
	DefaultTest promptfooTest   `json:"defaultTest"`
	Providers   json.RawMessage `json:"providers"`
	Targets     json.RawMessage `json:"targets"`
	Scenarios   json.RawMessage `json:"scenarios"`
	Redteam     json.RawMessage `json:"redteam"`
}

type promptfooTest struct {
	Description string            `json:"description"`
	Vars        map[string]any    `json:"vars"`
	Assert      []promptfooAssert `json:"assert"`
	Threshold   *float64          `json:"threshold"`
	Options     map[string]any    `json:"options"`
}

type promptfooAssert struct {
	Type      string          `json:"type"`
	Value     json.RawMessage `json:"value"`
	Threshold *float64        `json:"threshold"`
	Weight    *float64        `json:"weight"`
	Metric    string          `json:"metric"`
	Transform any             `json:"transform"`
}

// promptfoo reads a configuration.
func (m *imported) promptfoo(file string) error {
	source, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	doc, err := document.Parse(filepath.Base(file), source)
	if err != nil {
		return err
	}
	content, err := doc.JSON()
	if err != nil {
		return err
	}
	var config promptfooConfig
	if err := json.Unmarshal(content, &config); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for key, value := range map[string]json.RawMessage{"scenarios": config.Scenarios, "redteam": config.Redteam} {
		if value != nil {
			m.lose("%s", key)
		}
	}
	if config.Providers != nil || config.Targets != nil {
		m.lose("providers: pass models as arms, e.g. --arm a=agent:model,model:NAME")
	}
	dir := filepath.Dir(file)
	if err := m.promptfooPrompt(config.Prompts, dir); err != nil {
		return err
	}
	tests, err := m.promptfooTests(config.Tests, dir)
	if err != nil {
		return err
	}
	m.grade = m.promptfooChecks(config.DefaultTest.Assert)
	m.threshold = config.DefaultTest.Threshold
	m.promptfooOptions(config.DefaultTest.Options)
	for i, test := range tests {
		m.promptfooSample(i, test, config.DefaultTest)
	}
	return nil
}

// nunjucks is what templates of promptfoo have beyond the names of variables.
var nunjucks = lazyregexp.New(`\{%|\{#|\{\{[^}]*[|(][^}]*\}\}`)

// promptSeparator stands between the prompts of a text file.
var promptSeparator = lazyregexp.New(`(?m)\s*^[ \t]*---[ \t]*$\s*`)

// readBeside reads a file of the configuration's directory. A name or link that leads out of it is
// an error: the text goes to models.
func readBeside(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.ReadFile(filepath.FromSlash(name))
}

func (m *imported) promptfooPrompt(raw json.RawMessage, dir string) error {
	var prompts []any
	if json.Unmarshal(raw, &prompts) != nil {
		var one string
		if json.Unmarshal(raw, &one) != nil {
			return fmt.Errorf("prompts: must be a prompt or a list of prompts")
		}
		prompts = []any{one}
	}
	if len(prompts) == 0 {
		return fmt.Errorf("prompts: there is none")
	}
	all := len(prompts)
	if fields, ok := prompts[0].(map[string]any); ok {
		prompts[0] = fields["raw"]
		if fields["raw"] == nil {
			prompts[0] = fields["id"]
		}
	}
	text, _ := prompts[0].(string)
	if name, isFile := strings.CutPrefix(text, "file://"); isFile {
		content, err := readBeside(dir, name)
		if err != nil {
			return fmt.Errorf("prompts: %w", err)
		}
		if ext := filepath.Ext(name); ext == ".js" || ext == ".py" || ext == ".json" {
			m.lose("what the prompt %s computes: its text was used verbatim", name)
		}
		text = string(content)
		if parts := promptSeparator.Get().Split(text, -1); filepath.Ext(name) == ".txt" {
			text, all = parts[0], all+len(parts)-1
		}
	}
	if all > 1 {
		m.lose("%d of %d prompts: import the configuration again for each, or make them system prompts of arms", all-1,
			all)
	}
	if nunjucks.MatchString(text) {
		m.lose("filters and statements in the prompt: only {{variable}} is filled in")
	}
	m.prompt = text
	return nil
}

// promptfooTests are the tests of the configuration, or of the files that it names.
func (m *imported) promptfooTests(raw json.RawMessage, dir string) ([]promptfooTest, error) {
	var tests []promptfooTest
	var name string
	if json.Unmarshal(raw, &name) == nil && name != "" {
		return m.promptfooFile(filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(name, "file://"))))
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return nil, errors.New("tests: must be a list of tests, or the name of a file that has them")
	}
	for _, one := range list {
		if json.Unmarshal(one, &name) == nil {
			more, err := m.promptfooFile(filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(name, "file://"))))
			if err != nil {
				return nil, err
			}
			tests = append(tests, more...)
			continue
		}
		var test promptfooTest
		if err := json.Unmarshal(one, &test); err != nil {
			return nil, fmt.Errorf("tests: %w", err)
		}
		tests = append(tests, test)
	}
	return tests, nil
}

// promptfooFile reads tests from a file: columns are variables, and __expected is an assertion.
func (m *imported) promptfooFile(file string) ([]promptfooTest, error) {
	rows, err := task.ReadRows(file)
	if err != nil {
		return nil, err
	}
	var tests []promptfooTest
	for _, row := range rows {
		if vars, ok := row["vars"].(map[string]any); ok {
			text, err := json.Marshal(row)
			if err != nil {
				return nil, err
			}
			test := promptfooTest{Vars: vars}
			if err := json.Unmarshal(text, &test); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			tests = append(tests, test)
			continue
		}
		test := promptfooTest{Vars: map[string]any{}}
		for name, value := range row {
			switch text := fmt.Sprint(value); {
			case name == "__expected" || strings.HasPrefix(name, "__expected"):
				if text != "" {
					test.Assert = append(test.Assert, expected(text))
				}
			case name == "__description":
				test.Description = text
			case strings.HasPrefix(name, "__"):
				m.lose("the column %s", name)
			default:
				test.Vars[name] = value
			}
		}
		tests = append(tests, test)
	}
	return tests, nil
}

// expected reads "type: value", or a value that the answer equals.
func expected(text string) promptfooAssert {
	kind, value, found := strings.Cut(text, ":")
	if !found || !slices.Contains(promptfooKinds, strings.TrimPrefix(kind, "not-")) {
		kind, value = "equals", text
	}
	quoted, _ := json.Marshal(strings.TrimSpace(value)) // text always can be
	one := promptfooAssert{Type: kind, Value: quoted}
	if number, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
		one.Threshold = &number
	}
	return one
}

var promptfooKinds = []string{
	"equals", "contains", "icontains", "contains-any", "contains-all", "icontains-any", "icontains-all", "regex",
	"starts-with", "is-json", "cost", "latency", "llm-rubric",
}

func (m *imported) promptfooOptions(options map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(options)) {
		m.lose("the option %s", name)
	}
}

func (m *imported) promptfooSample(i int, test, byDefault promptfooTest) {
	sample := map[string]any{}
	maps.Copy(sample, byDefault.Vars)
	maps.Copy(sample, test.Vars)
	for _, name := range slices.Sorted(maps.Keys(sample)) {
		switch value := sample[name].(type) {
		case []any:
			m.lose("the lists of variables: every combination was a test; %s is a list now", name)
		case string:
			if strings.HasPrefix(value, "file://") {
				m.lose("the file that the variable %s names: its name was used instead", name)
			}
		}
		if name == "id" || name == "grade" {
			m.lose("the variable %s, whose name is reserved for a column of fit's", name)
		}
	}
	sample["id"] = strconv.Itoa(i + 1)
	delete(sample, "grade")
	if checks := m.promptfooChecks(test.Assert); len(checks) > 0 {
		sample["grade"] = checks
	}
	if test.Threshold != nil && (m.threshold == nil || *m.threshold != *test.Threshold) {
		m.lose("thresholds of single tests: threshold in family.yaml applies to all")
	}
	m.promptfooOptions(test.Options)
	m.samples = append(m.samples, sample)
}

// promptfooChecks are the checks that stand for assertions.
func (m *imported) promptfooChecks(assertions []promptfooAssert) []map[string]any {
	var checks []map[string]any
	for _, one := range assertions {
		kind, not := strings.CutPrefix(one.Type, "not-")
		check, why := one.check(kind)
		if why == "" && one.Transform != nil {
			why = "a transform of the answer"
		}
		if why == "" && kind == "llm-rubric" && (not || one.Threshold != nil) {
			why = "a rubric is met or not"
		}
		if why != "" {
			m.lose("assertions of the type %s: %s", one.Type, why)
			continue
		}
		if not {
			check["not"] = true
		}
		_, limit := check[task.CheckMaxCost]
		if _, seconds := check[task.CheckMaxSeconds]; limit || seconds {
			check["gate"] = true
		} else if one.Weight != nil && kind != "llm-rubric" {
			check["weight"] = *one.Weight
		}
		if one.Metric != "" && kind != "llm-rubric" {
			check["name"] = one.Metric
		}
		checks = append(checks, check)
	}
	return checks
}

func (a promptfooAssert) check(kind string) (check map[string]any, why string) {
	var text string
	_ = json.Unmarshal(a.Value, &text) // lists and objects are looked at where they can be
	check = map[string]any{}
	if strings.HasPrefix(kind, "icontains") {
		kind, check["ignoreCase"] = kind[1:], true
	}
	switch kind {
	case "equals":
		check["equals"] = text
	case "contains":
		check["contains"] = []string{text}
	case "contains-any", "contains-all":
		key := map[string]string{"contains-any": task.CheckContainsAny, "contains-all": task.CheckContains}[kind]
		check[key] = texts(a.Value, text)
	case "regex":
		check["matches"] = text
	case "starts-with":
		check["matches"] = `^\s*` + strings.ReplaceAll(regexp.QuoteMeta(text), `\{\{`, "{{")
		if strings.Contains(text, "{{") {
			return nil, "a template in it"
		}
	case "is-json":
		check["schema"] = map[string]any{}
		if len(a.Value) > 0 && a.Value[0] == '{' {
			check["schema"] = a.Value
		}
	case "cost", "latency":
		if a.Threshold == nil {
			return nil, "it has no threshold"
		}
		if check[task.CheckMaxCost] = *a.Threshold; kind == "latency" {
			check = map[string]any{task.CheckMaxSeconds: *a.Threshold / 1000}
		}
	case "llm-rubric":
		check["rubric"] = text
	default:
		return nil, "write a command that prints rows (grade: [{command: [...]}])"
	}
	return check, ""
}

// texts is a list, or a text with commas that is one.
func texts(raw json.RawMessage, text string) []string {
	var list []string
	if json.Unmarshal(raw, &list) == nil {
		return list
	}
	for part := range strings.SplitSeq(text, ",") {
		list = append(list, strings.TrimSpace(part))
	}
	return list
}
