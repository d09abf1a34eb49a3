package task

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// logParsers are the formats of test logs that can be read, by the names that SWE-bench has for
// them. Some projects have a name of their own for a format.
var logParsers = map[string]string{
	"pytest": "pytest", "pytest_options": "pytest_options", "pytest_v2": "pytest_v2", "django": "django",
	"matplotlib": "matplotlib", "seaborn": "seaborn", "sympy": "sympy", "gotest": "gotest", "cargo": "cargo",
	"jest": "jest", "vitest": "vitest", "tap": "tap",

	"astroid": "pytest", "flask": "pytest", "marshmallow": "pytest", "pvlib": "pytest", "pyvista": "pytest",
	"sqlfluff": "pytest", "xarray": "pytest",
	"pydicom": "pytest_options", "requests": "pytest_options", "pylint": "pytest_options",
	"astropy": "pytest_v2", "scikit": "pytest_v2", "sphinx": "pytest_v2",
}

// instanceRow reads the columns of a row and keeps its first error.
type instanceRow struct {
	columns map[string]any
	err     error
}

func (r *instanceRow) wrong(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// text returns a column that may be missing.
func (r *instanceRow) text(column string) string {
	switch value := r.columns[column].(type) {
	case nil:
	case string:
		return value
	default:
		r.wrong("%s: want text", column)
	}
	return ""
}

func (r *instanceRow) required(column string) string {
	text := r.text(column)
	if strings.TrimSpace(text) == "" {
		r.wrong("%s is missing: a row of SWE-bench has it", column)
	}
	return text
}

// choice returns a column with one of some values, or without any.
func (r *instanceRow) choice(column string, values ...string) string {
	text := r.text(column)
	if text != "" && !slices.Contains(values, text) {
		r.wrong("%s: %q is none of %s", column, text, strings.Join(values, ", "))
	}
	return text
}

// tests returns a column of test names: a list, or a list that is written as JSON text.
func (r *instanceRow) tests(column string) []string {
	value, ok := r.columns[column]
	if !ok {
		value = r.columns[strings.ToLower(column)]
	}
	if text, ok := value.(string); ok {
		if value = nil; strings.TrimSpace(text) != "" && json.Unmarshal([]byte(text), &value) != nil {
			r.wrong("%s: want a list of test names, or one that is written as JSON text", column)
			return nil
		}
	}
	var names []string
	list, ok := value.([]any)
	for _, element := range list {
		name, text := element.(string)
		ok = ok && text
		names = append(names, name)
	}
	switch {
	case value == nil:
		r.wrong("%s is missing: the tests that decide", column)
	case !ok:
		r.wrong("%s: want a list of test names, or one that is written as JSON text", column)
	}
	return names
}

// lacks returns what the row lacks for grading.
func (r *instanceRow) lacks(n *Instance) []string {
	var lacks []string
	for _, column := range []string{"eval_script", "log_parser", "eval_type"} {
		if strings.TrimSpace(r.text(column)) == "" {
			lacks = append(lacks, column)
		}
	}
	if name := r.text("log_parser"); name != "" && n.LogParser == "" {
		lacks = append(lacks, fmt.Sprintf("log_parser that can be read (%s; there are %s)", name,
			strings.Join(slices.Sorted(maps.Keys(logParsers)), " ")))
	}
	return lacks
}

var commitHash = lazyregexp.New(`^[0-9a-f]{7,64}$`)

// maxTaskID bounds the name of a task as it is written in the names of directories, which the
// system bounds at 255 bytes.
const maxTaskID = 240

func tooLong(id string) bool { return len(url.PathEscape(id)) > maxTaskID }

func isTaskID(id string) bool {
	return strings.TrimSpace(id) != "" && !strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsPrint(r) })
}
