package treatment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/gateway/calls"
)

// Start is what a model was given first: the first request that carries a turn and offers tools.
type Start struct {
	Model  string
	System []string // the parts of the system prompt, decoded
	Texts  []string // of the messages
	Tools  []Tool   // by name
	// Options are the sampling and other settings of the request: its other members, as JSON.
	Options map[string]string
}

// Tool is a tool that a model is offered.
type Tool struct {
	Name       string
	Definition string // description and schema, as JSON
}

// ReadStart reads the first request of a record, without what differs from run to run:
// directories, ids, dates.
func ReadStart(path, participant string) (*Start, error) {
	r, unknown, err := open(path, 0, participant)
	if err != nil {
		return nil, err
	}
	var q *request
	if r != nil {
		defer r.record.Close()
		q, unknown = r.first()
	}
	if q == nil {
		return nil, fmt.Errorf("what the model was given first is not known: %s", unknown)
	}
	var dirs map[string]string
	for _, place := range r.record.Places() {
		if participant == "" || place.Participant == participant {
			dirs = place.Dirs
		}
	}
	s := newStart(q, dirs)
	if s.Model == "" { // some protocols have it in the path
		s.Model = r.own[0].Model
	}
	return s, nil
}

// newStart returns what a request says, without directories and whatever else differs from run to
// run.
func newStart(q *request, dirs map[string]string) *Start {
	normal := calls.NewNormaliser(dirs)
	same := func(text string) string { return string(normal.Text([]byte(text))) }
	s := &Start{Model: q.model, Options: map[string]string{}}
	for _, t := range q.texts {
		switch t.part {
		case inSystem:
			s.System = append(s.System, same(t.text))
		case inMessages:
			s.Texts = append(s.Texts, same(t.text))
		}
	}
	for _, t := range q.tools {
		s.Tools = append(s.Tools, Tool{t.name, same(t.definition)})
	}
	slices.SortStableFunc(s.Tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	for name, value := range q.options {
		s.Options[name] = same(value)
	}
	return s
}
