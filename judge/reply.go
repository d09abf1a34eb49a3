package judge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// maxCandidates bounds how many opening braces are tried as the beginning of the last object, so
// that a reply full of braces costs little.
const maxCandidates = 512

// maxVerdict is how much of a reply's end is searched for its object.
const maxVerdict = 128 << 10

// opinion is what a member's reply says, before its citations are checked.
type opinion struct {
	result     string // Pass, Fail, X, Y or tie
	confidence float64
	critique   string
	evidence   []string
	claims     []claim
}

// claim is a claim of a kind that code can refute.
type claim struct {
	Type string `json:"type"`
	Cite string `json:"cite"`
}

// parseReply reads the one JSON object that ends a reply. The error tells a model what to mend.
func parseReply(text string, pair bool) (opinion, error) {
	fields, err := lastObject(text)
	if err != nil {
		return opinion{}, err
	}
	field, want := "result", []string{Pass, Fail}
	if pair {
		field, want = "winner", []string{winnerX, winnerY, winnerTie}
	}
	var o opinion
	if err := fields.decode(field, &o.result); err != nil {
		return opinion{}, err
	}
	if !slices.Contains(want, o.result) {
		return opinion{}, fmt.Errorf("%q is %q, want one of %q", field, o.result, want)
	}
	if err := fields.decode("confidence", &o.confidence); err != nil {
		return opinion{}, err
	}
	if math.IsNaN(o.confidence) || o.confidence < 0 || o.confidence > 1 {
		return opinion{}, fmt.Errorf("\"confidence\" is %v, want a number from 0 to 1", o.confidence)
	}
	if err := fields.decode("evidence", &o.evidence); err != nil {
		return opinion{}, err
	}
	for _, optional := range []struct {
		name string
		into any
	}{{"critique", &o.critique}, {"claims", &o.claims}} {
		if _, given := fields[optional.name]; !given {
			continue
		}
		if err := fields.decode(optional.name, optional.into); err != nil {
			return opinion{}, err
		}
	}
	return o, nil
}

// object holds the members of a JSON object, by their exact names.
type object map[string]json.RawMessage

func (o object) decode(name string, into any) error {
	raw, ok := o[name]
	if !ok {
		return fmt.Errorf("the JSON object has no %q", name)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%q is not what it should be: %w", name, err)
	}
	return nil
}

// lastObject finds the JSON object that a text ends with, which may stand in a code fence.
func lastObject(text string) (object, error) {
	text = strings.TrimSpace(text[max(0, len(text)-maxVerdict):])
	if rest, fenced := strings.CutSuffix(text, "```"); fenced {
		text = strings.TrimSpace(rest)
	}
	if text == "" {
		return nil, errors.New("the reply is empty")
	}
	if !strings.HasSuffix(text, "}") {
		return nil, errors.New("the reply does not end with a JSON object")
	}
	var problem error
	start := len(text)
	for range maxCandidates {
		start = strings.LastIndexByte(text[:start], '{')
		if start < 0 {
			break
		}
		if !json.Valid([]byte(text[start:])) {
			continue
		}
		fields, err := readObject(text[start:])
		if err == nil {
			return fields, nil
		}
		problem = err
		break
	}
	if problem == nil {
		problem = errors.New("the reply ends with a brace, but not with a valid JSON object")
	}
	return nil, problem
}

// readObject reads an object whose members have different names: of two verdicts neither counts.
func readObject(text string) (object, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	fields := object{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		if _, twice := fields[name]; twice {
			return nil, fmt.Errorf("the JSON object has two members %q", name)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		fields[name] = value
	}
	return fields, nil
}
