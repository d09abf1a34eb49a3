package document

import (
	"errors"
	"strings"
)

// Explain turns an error, and everything it is joined from, into lines for people: each problem once, with the line in question and a mark under the column
// where that is known.
func Explain(err error) string {
	var out strings.Builder
	for _, one := range flatten(err) {
		out.WriteString(one.Error())
		out.WriteByte('\n')
		var located *Error
		if errors.As(one, &located) {
			if caret := located.Caret(); caret != "" {
				out.WriteString("    " + strings.ReplaceAll(caret, "\n", "\n    ") + "\n")
			}
		}
	}
	return out.String()
}

// flatten takes joined errors apart.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, flatten(one)...)
	}
	return all
}
