package calls

import (
	"slices"

	"github.com/fit-eval/fit/internal/jsontape"
)

// cutMembers are the members of a request that are cut out of it: of a list every element, anything
// else as a whole.
var cutMembers = []string{"system", "instructions", "tools", "messages", "input", "contents", "systemInstruction"}

// piece is a part of a body: text[start:end]. What is at text[value:end] is a JSON value; a piece
// between such values has none.
type piece struct {
	start, value, end int
	member            string // the member of the request that the value is in
}

// cut divides the body of a request. The pieces follow each other without gaps. The separator
// between two elements belongs to the latter, so that the last message of a conversation is the
// same piece when another follows it.
func cut(parser *jsontape.Parser, body []byte) []piece {
	var pieces []piece
	at := 0
	add := func(member string, value jsontape.Value, first bool) {
		start, end := value.Span()
		if first {
			pieces = append(pieces, piece{start: at, value: start, end: start})
			at = start
		}
		pieces = append(pieces, piece{
			start:  at,
			value:  start,
			end:    end,
			member: member,
		})
		at = end
	}
	request, _ := parser.Parse(body) // what is not JSON has no members and is one piece
	for name, value := range request.Members() {
		known := slices.Index(cutMembers, name)
		if known < 0 {
			continue
		}
		if kind := value.Kind(); kind == jsontape.String || kind == jsontape.Object {
			add(cutMembers[known], value, true)
			continue
		}
		first := true
		for element := range value.Elements() {
			if len(pieces) > maxChunks/2 {
				break
			}
			add(cutMembers[known], element, first)
			first = false
		}
	}
	return append(pieces, piece{start: at, value: len(body), end: len(body)})
}
