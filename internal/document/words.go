package document

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/google/jsonschema-go/jsonschema"
)

// nouns are the types of JSON in words for people who write YAML.
var nouns = map[string]string{
	"null": "nothing", "boolean": "true or false", "string": "text", "integer": "a whole number", "number": "a number",
	"array": "a list", "object": "a mapping",
}

// broken describes which rule of its schema a value breaks by itself, without the values inside it;
// "" if none.
func broken(schema *jsonschema.Schema, value any) string {
	types := schema.Types
	if schema.Type != "" {
		types = []string{schema.Type}
	}
	fits := func(t string) bool { return hasType(t, value) }
	if len(types) > 0 && !slices.ContainsFunc(types, fits) {
		var wanted []string
		for _, t := range types {
			wanted = append(wanted, nouns[t])
		}
		return fmt.Sprintf("must be %s, but is %s", strings.Join(wanted, " or "), shown(value))
	}
	same := func(allowed any) bool { return equal(allowed, value) }
	if len(schema.Enum) > 0 && !slices.ContainsFunc(schema.Enum, same) {
		return fmt.Sprintf("must be %s, but is %s", choices(schema.Enum), shown(value))
	}
	if text, ok := value.(string); ok {
		return brokenText(schema, text)
	}
	if n, ok := asNumber(value); ok {
		return brokenNumber(schema, n, shown(value))
	}
	return ""
}

func brokenNumber(schema *jsonschema.Schema, n float64, written string) string {
	switch {
	case math.IsNaN(n) || math.IsInf(n, 0): // YAML has them, JSON does not, and no bound refuses all
		return fmt.Sprintf("must be a finite number, but is %s", written)
	case schema.Minimum != nil && n < *schema.Minimum:
		return fmt.Sprintf("must be at least %s, but is %s", number(*schema.Minimum), written)
	case schema.Maximum != nil && n > *schema.Maximum:
		return fmt.Sprintf("must be at most %s, but is %s", number(*schema.Maximum), written)
	}
	return ""
}

func brokenText(schema *jsonschema.Schema, text string) string {
	matches, err := regexp.MatchString(schema.Pattern, text)
	switch {
	case matches:
		return ""
	case err != nil:
		return err.Error()
	case text == "":
		return "must not be empty"
	case len(schema.Examples) > 0:
		return fmt.Sprintf("must look like %s, but is %s", choices(schema.Examples), shown(text))
	}
	return fmt.Sprintf("must have the form %s, but is %s", schema.Pattern, shown(text))
}

// equal compares values as JSON does, to which 1 and 1.0 are the same.
func equal(a, b any) bool {
	x, isNumber := asNumber(a)
	y, areNumbers := asNumber(b)
	if isNumber && areNumbers {
		return x == y
	}
	return reflect.DeepEqual(a, b)
}

func asNumber(value any) (float64, bool) {
	switch n := value.(type) {
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	case uint64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// longestShown is how much of a value is in a message.
const longestShown = 60

// shown returns a value as a message names it.
func shown(value any) string {
	switch v := value.(type) {
	case nil, []any, map[string]any:
		return nouns[typeOf(v)]
	case string:
		return strconv.Quote(display.CutRunes(v, longestShown))
	}
	if n, ok := asNumber(value); ok {
		return number(n)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(raw)
}

// choices are values to choose from: a, b or c.
func choices(values []any) string {
	var words []string
	for _, value := range values {
		if text, ok := value.(string); ok {
			words = append(words, text)
			continue
		}
		words = append(words, shown(value))
	}
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
