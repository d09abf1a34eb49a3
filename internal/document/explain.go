package document

import (
	"errors"
	"strings"
)

// longestExcerpt is how long a line may be to be shown whole; longer ones, such as those of
// minified files, are not shown.
const longestExcerpt = 160

// Explain returns the text of an error with the line in question, and a mark under the column,
// below each problem of a file.
func Explain(err error) string {
	located := problems(err)
	var out strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(err.Error(), "\n"), "\n") {
		out.WriteString(line + "\n")
		if caret := caretOf(line, located); caret != "" {
			out.WriteString("    " + strings.ReplaceAll(caret, "\n", "\n    ") + "\n")
		}
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// caretOf returns the mark for a line of an error's text: that of the problem it ends with.
func caretOf(line string, located []*Error) string {
	for _, problem := range located {
		if strings.HasSuffix(line, problem.Error()) {
			return problem.Caret()
		}
	}
	return ""
}

// problems finds the problems of files that an error wraps.
func problems(err error) []*Error {
	switch e := err.(type) {
	case nil:
		return nil
	case *Error:
		return []*Error{e}
	case interface{ Unwrap() []error }:
		var all []*Error
		for _, one := range e.Unwrap() {
			all = append(all, problems(one)...)
		}
		return all
	default:
		return problems(errors.Unwrap(err))
	}
}
