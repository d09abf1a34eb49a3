package judge

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fit-eval/fit/internal/jsontape"
)

// maxCandidates bounds how many opening braces are tried as the beginning of the last object, so
// that a reply full of braces costs little.
const maxCandidates = 512

// maxVerdict is how much of a reply's end is searched for its object.
const maxVerdict = 128 << 10

// opinion is a member's parsed reply, before its citations are checked.
type opinion struct {
	result     string // Pass, Fail, X, Y or tie
	confidence float64
	critique   string
	evidence   []string
	claims     []claim
}

// claim is a claim of a kind that code can refute.
type claim struct{ kind, cite string }

// parseReply reads the one JSON object that ends a reply. The error tells the model what to
// correct.
func parseReply(text string, pair bool) (opinion, error) {
	parser, _ := parsers.Get().(*jsontape.Parser)
	defer parsers.Put(parser)
	fields, before, err := lastObject(parser, text)
	if err != nil {
		return opinion{}, err
	}
	field, want := "result", []string{Pass, Fail}
	if pair {
		field, want = "winner", []string{winnerX, winnerY, winnerTie}
	}
	o := opinion{result: fields.text(field, &err), critique: fields.text("critique", nil)}
	if err == nil && !slices.Contains(want, o.result) {
		err = fmt.Errorf("%q is %q, want one of %q", field, o.result, want)
	}
	if err == nil && contradicted(before, field, o.result, want) {
		err = fmt.Errorf("the reply holds two JSON objects that differ in %q", field)
	}
	if o.confidence = fields.get("confidence", jsontape.Number, &err).Float64(); o.confidence < 0 || o.confidence > 1 {
		err = cmp.Or(err, fmt.Errorf("\"confidence\" must be a number from 0 to 1, not %v", o.confidence))
	}
	for item := range fields.get("evidence", jsontape.Array, &err).Elements() {
		if item.Kind() != jsontape.String {
			err = cmp.Or(err, errors.New("\"evidence\" holds something that is not a text"))
		}
		o.evidence = append(o.evidence, strings.Clone(item.Text()))
	}
	for item := range fields.get("claims", jsontape.Array, nil).Elements() {
		o.claims = append(o.claims, claim{strings.Clone(item.TextOf("type")), strings.Clone(item.TextOf("cite"))})
	}
	return o, err
}

// object is a JSON object whose members have different names.
type object struct{ jsontape.Value }

// kindNames are the kinds of values as models know them.
var kindNames = map[jsontape.Kind]string{
	jsontape.String: "a text", jsontape.Number: "a number", jsontape.Array: "a list",
}

// get returns a member of a kind. A missing one, or one of another kind, is a problem where problem
// is given, which keeps the first.
func (o object) get(name string, kind jsontape.Kind, problem *error) jsontape.Value {
	value := o.Get(name)
	switch {
	case value.Kind() == kind:
		return value
	case problem == nil || *problem != nil:
	case !value.Exists():
		*problem = fmt.Errorf("the JSON object has no %q", name)
	default:
		*problem = fmt.Errorf("%q is not %s", name, kindNames[kind])
	}
	return jsontape.Value{}
}

func (o object) text(name string, problem *error) string {
	return strings.Clone(o.get(name, jsontape.String, problem).Text())
}

// contradicted reports whether an object in the text before the verdict gives another one. It is
// unclear which of them the model means.
func contradicted(text, field, result string, want []string) bool {
	start := len(text)
	for range maxCandidates {
		if start = strings.LastIndexByte(text[:start], '{'); start < 0 {
			return false
		}
		var fields map[string]any
		if json.NewDecoder(strings.NewReader(text[start:])).Decode(&fields) != nil {
			continue
		}
		if other, is := fields[field].(string); is && other != result && slices.Contains(want, other) {
			return true
		}
	}
	return false
}

// parsers is a pool of unused parsers: a report reads tens of thousands of replies.
var parsers = sync.Pool{New: func() any { return new(jsontape.Parser) }}

// lastObject finds the JSON object that a text ends with, which may stand in a code fence, and the
// text before it.
func lastObject(parser *jsontape.Parser, text string) (fields object, before string, err error) {
	text = strings.TrimSpace(text[max(0, len(text)-maxVerdict):])
	if rest, fenced := strings.CutSuffix(text, "```"); fenced {
		text = strings.TrimSpace(rest)
	}
	if text == "" {
		return object{}, "", errors.New("the reply is empty")
	}
	if !strings.HasSuffix(text, "}") {
		return object{}, "", errors.New("the reply does not end with a JSON object")
	}
	bytes := []byte(text)
	start := len(text)
	for range maxCandidates {
		if start = strings.LastIndexByte(text[:start], '{'); start < 0 {
			break
		}
		if value, ok := parser.Parse(bytes[start:]); ok {
			fields, err = objectOf(value)
			return fields, text[:start], err
		}
	}
	return object{}, "", errors.New("the reply ends with a brace, but not with a valid JSON object")
}

// objectOf refuses an object with a repeated name: if there are two verdicts, neither counts.
func objectOf(value jsontape.Value) (object, error) {
	for name, member := range value.Members() {
		first, _ := value.Get(name).Span()
		if at, _ := member.Span(); at != first {
			return object{}, fmt.Errorf("the JSON object has two members %q", name)
		}
	}
	return object{value}, nil
}
