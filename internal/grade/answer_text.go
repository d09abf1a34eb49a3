package grade

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/task"
)

// compareAnswer reports whether a check holds for an answer, and why not. An error means that it is
// unknown.
func compareAnswer(check task.AnswerCheck, answer *Answer, text string) (holds bool, why string, err error) {
	switch check.Kind {
	case task.CheckEquals:
		holds, why = equals(check, text)
	case task.CheckContains, task.CheckContainsAny, task.CheckExcludes:
		holds, why = contains(check, text)
	case task.CheckMatches:
		return matches(check, text)
	case task.CheckSchema:
		return conforms(check, text)
	case task.CheckChoice:
		holds, why = choice(check, text)
	case task.CheckMaxCost:
		if answer.CostUSD == nil {
			return false, "", errors.New("the cost is unknown")
		}
		return *answer.CostUSD <= check.Limit, "it cost " + display.FineDollars(*answer.CostUSD), nil
	case task.CheckMaxSeconds:
		seconds := float64(answer.DurationMs) / 1000
		return seconds <= check.Limit, fmt.Sprintf("it took %.1f s", seconds), nil
	case task.CheckMaxTurns:
		return float64(answer.Turns) <= check.Limit, fmt.Sprintf("it took %d turns", answer.Turns), nil
	default:
		if answer.Trace == nil {
			return false, "there is no trace", nil
		}
		return answer.Trace(check)
	}
	return holds, why, nil
}

// equals compares the answer with every correct text.
func equals(check task.AnswerCheck, text string) (bool, string) {
	for _, want := range check.Want {
		if same(check, text, want) {
			return true, ""
		}
	}
	return false, fmt.Sprintf("want %s, got %s", shown(strings.Join(check.Want, " or ")), shown(text))
}

func shown(text string) string { return strconv.Quote(display.CutBytes(text, 200)) }

func same(check task.AnswerCheck, got, want string) bool {
	switch check.As {
	case task.CompareNormalised:
		if text := normalised(want); text != "" { // else it is punctuation, which must be there
			return normalised(got) == text
		}
	case task.CompareWords:
		return words(got) == words(want)
	case task.CompareEnding:
		return strings.HasSuffix(bare(got), bare(want))
	case task.CompareNumber:
		a, aOK := number(got)
		b, bOK := number(want)
		// the tolerance is for decimals that have no exact binary form
		return aOK && bOK && math.Abs(a-b) <= check.Tolerance+1e-12*math.Max(1, math.Abs(b))
	}
	return strings.TrimSpace(got) == strings.TrimSpace(want)
}

// bare returns a text without case, and without white space and ASCII punctuation around it.
func bare(text string) string {
	return strings.Trim(cases.Fold().String(strings.TrimSpace(text)), " \t\n\r\v\f"+asciiPunctuation)
}

const asciiPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

// normalised returns a text without case, with single blanks, and without punctuation around it.
func normalised(text string) string {
	text = strings.ToLower(norm.NFKC.String(text))
	text = strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsPunct(r) })
	return strings.Join(strings.Fields(text), " ")
}

var (
	plainNumber      = lazyregexp.New(`^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$`)
	punctuation      = lazyregexp.New(`[[:punct:]]`)
	outerPunctuation = lazyregexp.New(`^[\s[:punct:]]+|[\s[:punct:]]+$`)
)

// words returns the words of a text without case, punctuation and articles, and with numbers in one
// form. A hyphen separates words.
func words(text string) string {
	var all []string
	for token := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return r == ' ' || r == '-' }) {
		stripped := outerPunctuation.Get().ReplaceAllString(token, "")
		switch {
		case plainNumber.MatchString(token): // its point may come first
		case plainNumber.MatchString(stripped):
			token = stripped
		default:
			token = punctuation.Get().ReplaceAllString(token, "")
		}
		if value, err := strconv.ParseFloat(token, 64); err == nil && plainNumber.MatchString(token) {
			token = strconv.FormatFloat(value, 'g', -1, 64)
		}
		for word := range strings.FieldsSeq(token) {
			if word != "a" && word != "an" && word != "the" {
				all = append(all, word)
			}
		}
	}
	return strings.Join(all, " ")
}

var numberPattern = lazyregexp.New(`[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+|\d)(?:[eE][-+]?\d+)?`)

// number returns the last number in a text: the answer usually comes at the end.
func number(text string) (float64, bool) {
	text = strings.ReplaceAll(text, "\u2212", "-") // the minus of typesetters
	found := numberPattern.Get().FindAllStringIndex(text, -1)
	if len(found) == 0 {
		return 0, false
	}
	begin, end := found[len(found)-1][0], found[len(found)-1][1]
	before, _ := utf8.DecodeLastRuneInString(text[:begin])
	if strings.ContainsRune("+-", rune(text[begin])) && (unicode.IsDigit(before) || unicode.IsLetter(before)) {
		begin++ // a range or a date, not a sign
	}
	value, err := strconv.ParseFloat(strings.ReplaceAll(text[begin:end], ",", ""), 64)
	return value, err == nil
}

func contains(check task.AnswerCheck, text string) (bool, string) {
	fold := func(s string) string { return s }
	if check.IgnoreCase {
		fold = cases.Fold().String
	}
	text = fold(text)
	var there, missing []string
	for _, want := range check.Want {
		if strings.Contains(text, fold(want)) {
			there = append(there, want)
		} else {
			missing = append(missing, want)
		}
	}
	switch check.Kind {
	case task.CheckContainsAny:
		return len(there) > 0, "it contains none of " + shown(strings.Join(missing, ", "))
	case task.CheckExcludes:
		return len(there) == 0, "it contains " + shown(strings.Join(there, ", "))
	}
	return len(missing) == 0, "it does not contain " + shown(strings.Join(missing, ", "))
}

// maxMatching bounds the search for the last match: every match may look at the whole text, so that
// an answer could keep the processor busy for hours.
const maxMatching = 64 << 20

// matches looks for the expression, and compares its first group, or the whole, with what is
// wanted. The last match counts.
func matches(check task.AnswerCheck, text string) (bool, string, error) {
	pattern := check.Pattern
	if check.IgnoreCase {
		pattern = "(?i)" + pattern
	}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return false, "", err
	}
	if len(check.Want) == 0 {
		return compiled.MatchString(text), "nothing matches " + check.Pattern, nil
	}
	most := max(1, maxMatching/max(1, len(text)))
	all := compiled.FindAllStringSubmatch(text, most+1)
	switch {
	case len(all) == 0:
		return false, "nothing matches " + check.Pattern, nil
	case len(all) > most:
		return false, fmt.Sprintf("%s matches more than %d times in %d bytes", check.Pattern, most, len(text)), nil
	}
	last := all[len(all)-1]
	holds, why := equals(check, last[min(1, len(last)-1)])
	return holds, why, nil
}

// conforms checks JSON, with or without the code fence that models put around it.
func conforms(check task.AnswerCheck, text string) (bool, string, error) {
	var schema jsonschema.Schema
	if err := json.Unmarshal(check.Schema, &schema); err != nil {
		return false, "", fmt.Errorf("the schema: %w", err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return false, "", fmt.Errorf("the schema: %w", err)
	}
	source := []byte(withoutFence(text))
	var value any
	if _, err := document.JSONValue(source); err != nil { // it also finds two members of one name
		return false, "it is not JSON: " + err.Error(), nil
	}
	if err := json.Unmarshal(source, &value); err != nil {
		return false, "it is not JSON: " + err.Error(), nil
	}
	if err := resolved.Validate(value); err != nil {
		return false, err.Error(), nil
	}
	return true, "", nil
}

var fence = lazyregexp.New("(?s)^\\s*```[A-Za-z]*\\s*\n(.*?)\n?\\s*```\\s*$")

func withoutFence(text string) string {
	if match := fence.FindStringSubmatch(text); match != nil {
		return match[1]
	}
	return text
}

var (
	// A small letter may be a word: it counts only where nothing follows.
	choicePattern = lazyregexp.New(`(?m)(?i:\banswer)\**(?i:\s+is\b\s*:?|\s*:)\s*\**\s*\(?` +
		`(?:([A-Z])\b|([a-z])(?:[).*,;]|\s*$))`)
	soleChoice = lazyregexp.New(`^[\s*(]*([A-Za-z])[\s).:*]*$`)
	ledChoice  = lazyregexp.New(`^[\s*(]*([A-Z])[).:]\s`)
)

// choice finds out which choice an answer names.
func choice(check task.AnswerCheck, text string) (bool, string) {
	got := chosen(check.Choices, text)
	if slices.ContainsFunc(check.Want, func(want string) bool { return len(want) > 1 }) {
		got = chosenTogether(text)
	}
	if got == "" {
		return false, "the answer names no choice: " + shown(text)
	}
	return slices.Contains(check.Want, got), fmt.Sprintf("want %s, got %s", strings.Join(check.Want, " or "), got)
}

func chosen(choices []string, text string) string {
	if all := choicePattern.FindAllStringSubmatch(text, -1); len(all) > 0 {
		return strings.ToUpper(all[len(all)-1][1] + all[len(all)-1][2])
	}
	for _, pattern := range []*lazyregexp.Regexp{soleChoice, ledChoice} {
		if match := pattern.FindStringSubmatch(text); match != nil {
			return strings.ToUpper(match[1])
		}
	}
	for i, one := range choices {
		if normalised(one) == normalised(text) {
			return string(rune('A' + i))
		}
	}
	return ""
}

var lettersPattern = lazyregexp.New(`(?i)\banswer\s*:\s*([A-Z, ]+)`)

// chosenTogether finds the letters of all choices that an answer names last: A,C or AC or A and C.
func chosenTogether(text string) string {
	all := lettersPattern.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return ""
	}
	named := strings.ReplaceAll(strings.ToUpper(all[len(all)-1][1]), " AND ", "")
	letters := strings.Split(strings.NewReplacer(",", "", " ", "").Replace(named), "")
	slices.Sort(letters)
	return strings.Join(slices.Compact(letters), "")
}
