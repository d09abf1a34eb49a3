package document

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/display"
	"github.com/google/jsonschema-go/jsonschema"
)

// nouns are the types of JSON in words for people who write YAML.
var nouns = map[string]string{
	"null": "nothing", "boolean": "true or false", "string": "text", "integer": "a whole number", "number": "a number",
	"array": "a list", "object": "a mapping",
}

// broken describes which rule of its schema a value breaks by itself; "" if it breaks none of the
// rules described here.
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
	if schema.Const != nil && !same(*schema.Const) {
		return fmt.Sprintf("must be %s, but is %s", shown(*schema.Const), shown(value))
	}
	switch value := value.(type) {
	case string:
		return brokenText(schema, value)
	case []any:
		return brokenList(schema, value)
	case map[string]any:
		return miscounted(len(value), schema.MinProperties, schema.MaxProperties, "setting")
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
	case schema.ExclusiveMinimum != nil && n <= *schema.ExclusiveMinimum:
		return fmt.Sprintf("must be more than %s, but is %s", number(*schema.ExclusiveMinimum), written)
	case schema.ExclusiveMaximum != nil && n >= *schema.ExclusiveMaximum:
		return fmt.Sprintf("must be less than %s, but is %s", number(*schema.ExclusiveMaximum), written)
	}
	return ""
}

func brokenText(schema *jsonschema.Schema, text string) string {
	if message := miscounted(utf8.RuneCountInString(text), schema.MinLength, schema.MaxLength,
		"character"); message != "" {
		return message
	}
	if schema.Pattern == "" || matches(schema.Pattern, text) {
		return ""
	}
	switch {
	case text == "":
		return "must not be empty"
	case len(schema.Examples) > 0:
		return fmt.Sprintf("must look like %s, but is %s", choices(schema.Examples), shown(text))
	}
	return fmt.Sprintf("must have the form %s, but is %s", schema.Pattern, shown(text))
}

func brokenList(schema *jsonschema.Schema, items []any) string {
	if message := miscounted(len(items), schema.MinItems, schema.MaxItems, "item"); message != "" {
		return message
	}
	for i := range items {
		again := func(earlier any) bool { return equal(earlier, items[i]) }
		if schema.UniqueItems && slices.ContainsFunc(items[:i], again) {
			return fmt.Sprintf("must not have %s twice", shown(items[i]))
		}
	}
	return ""
}

// miscounted says which of two bounds a number of things breaks.
func miscounted(n int, least, most *int, noun string) string {
	var bound string
	var limit int
	switch {
	case least != nil && n < *least:
		bound, limit = "at least", *least
	case most != nil && n > *most:
		bound, limit = "at most", *most
	default:
		return ""
	}
	if limit != 1 {
		noun += "s"
	}
	return fmt.Sprintf("must have %s %d %s, but has %d", bound, limit, noun, n)
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

// matches asks the library, which knows what patterns mean.
func matches(pattern, text string) bool {
	resolved, err := (&jsonschema.Schema{Pattern: pattern}).Resolve(nil)
	return err == nil && resolved.Validate(text) == nil
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
