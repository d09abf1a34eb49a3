package query

import (
	"sync"

	"github.com/fit-eval/fit/internal/jsontape"
)

var parsers = sync.Pool{New: func() any { return new(jsontape.Parser) }}

// unescape returns the text of a string, given what is between its quotes.
func unescape(inner []byte) string { return jsontape.Unescape(inner) }

// optional returns the text of a string, nil for one that is empty or missing.
func optional(inner []byte) *string {
	if len(inner) == 0 {
		return nil
	}
	return new(unescape(inner))
}

// textMember returns the text of a string member, nil if there is none.
func textMember(object jsontape.Value, name string) *string {
	inner := object.Get(name).Inner()
	if inner == nil {
		return nil
	}
	return new(unescape(inner))
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
