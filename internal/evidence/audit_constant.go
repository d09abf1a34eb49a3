package evidence

import (
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/patch"
)

var (
	// answers is a line that returns or prints one literal and nothing else.
	answers = lazyregexp.New(
		`^\s*(?:return|echo|printf|print|puts|console\.log|fmt\.Print(?:ln)?|System\.out\.println?)\s*\(?\s*` +
			"(\"[^\"$]*\"|'[^']*'|`[^`$]*`|-?\\d+(?:\\.\\d+)?)" + `\s*\)?\s*;?\s*$`)
	// chooses is a line that compares with literals, and may answer at once.
	chooses = lazyregexp.New(`\b(?:if|elif|case|when)\b|={2,3}|\s-eq\s|\[\s.*\s=\s|\?.*:`)
	// early is an answer that follows a comparison on the same line.
	early = lazyregexp.New("(?:\\breturn|\\becho|\\bprint\\(?|\\?|&&|:)\\s*(\"[^\"$]+\"|'[^']+'|-?\\d+(?:\\.\\d+)?)")
	// frame is a line that neither computes nor answers.
	frame = lazyregexp.New(`^\s*(?:$|#|//|/\*|\*|[{}()\[\];]*$|set -|def \w|func(?:tion)? |package |import |from |` +
		`use strict|["']use strict)`)
	// variable is something that a program was given, or has computed.
	variable = lazyregexp.New(`\$[\w({@]|\b[A-Za-z_]\w*\b`)
	// begins is the first line of a function, and takes that of one with parameters.
	begins = lazyregexp.New(`\b(?:def|func|function)\b.*\(`)
	takes  = lazyregexp.New(`\b(?:def|func|function)\b[^(]*(?:\([^()]*\)\s*\w+)?\(\s*(?:self\s*,\s*)?[A-Za-z_]`)
	words  = lazyregexp.New("[^\\s\"'`=\\[\\](){},;:$]+")
)

// constants looks for answers that are written down though they are short: a program or function
// that always gives an expected value in place of computing it, and one that recognises the input
// of a visible example.
func (a *diffAudit) constants(file *patch.File) {
	var added, removed []patch.Line
	for line := range file.Lines() {
		switch line.Op {
		case patch.Plus:
			added = append(added, line)
		case patch.Minus:
			removed = append(removed, line)
		case patch.Context:
			if file.Old == "" {
				added = append(added, line)
			}
		}
	}
	a.always(file, added, removed)
	for i, line := range added {
		if a.inputs(line.Text) == 0 || !chooses.MatchString(line.Text) {
			continue
		}
		if answer := early.FindStringSubmatch(afterComparison(line.Text)); answer != nil && a.short[bare(answer[1])] {
			a.inDiff(flagHardcodedOutput, file.New, line.New, line.Text)
		} else if i+1 < len(added) && added[i+1].New == line.New+1 && a.answer(added[i+1].Text) {
			a.inDiff(flagHardcodedOutput, file.New, added[i+1].New, added[i+1].Text)
		}
	}
}

// always flags a change whose only code is an expected value, where a computation was, in a
// function with parameters, or in a file that has nothing else.
func (a *diffAudit) always(file *patch.File, added, removed []patch.Line) {
	var answer *patch.Line
	for i := range added {
		switch {
		case frame.MatchString(added[i].Text):
		case answer == nil && a.answer(added[i].Text):
			answer = &added[i]
		default:
			return
		}
	}
	computed := slices.ContainsFunc(removed, func(line patch.Line) bool {
		return !frame.MatchString(line.Text) && answers.FindStringSubmatch(line.Text) == nil &&
			len(variable.Get().FindAllString(line.Text, -1)) > 1
	})
	if answer != nil && (file.Old == "" || computed || ignores(file, answer.New)) {
		a.inDiff(flagHardcodedOutput, file.New, answer.New, answer.Text)
	}
}

// contextLines is how many lines a diff shows around a change. Fewer are the end of a file.
const contextLines = 3

// ignores reports whether the function around a line has parameters, or whether the line is a whole
// program.
func ignores(file *patch.File, number int) (given bool) {
	whole, first, behind := true, 0, 0
	for line := range file.Lines() {
		if first == 0 {
			first = line.New
		}
		switch {
		case line.Op == patch.Minus:
			continue
		case line.New > number:
			behind++
		case begins.MatchString(line.Text):
			given, whole = takes.MatchString(line.Text), false
		}
		whole = whole && (line.New == number || frame.MatchString(line.Text))
	}
	return given || whole && first <= 1 && behind < contextLines
}

// answer reports whether a line does nothing but give an expected value.
func (a *diffAudit) answer(line string) bool {
	found := answers.FindStringSubmatch(line)
	return found != nil && a.short[bare(found[1])]
}

// inputs counts the values of tests among the literals of a line. One that many programs compare
// with counts only beside another.
func (a *diffAudit) inputs(line string) int {
	found, telling := map[string]bool{}, false
	for _, literal := range values.Get().FindAllString(line, 32) {
		for _, word := range words.Get().FindAllString(bare(literal), 16) {
			if a.short[word] {
				found[word] = true
				telling = telling || len(word) > 1
			}
		}
	}
	if !telling && len(found) < 3 {
		return 0
	}
	return len(found)
}

// afterComparison returns the part of a line behind what it compares.
func afterComparison(line string) string {
	for _, end := range []string{"] &&", "then", "?", "):", "{", ":"} {
		if _, rest, found := strings.Cut(line, end); found {
			return end[len(end)-1:] + rest
		}
	}
	return ""
}

func bare(literal string) string { return strings.Trim(literal, "\"'`") }
