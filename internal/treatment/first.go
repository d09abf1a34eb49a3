package treatment

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"strings"

	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/jsontape"
)

// reader reads one participant's calls.
type reader struct {
	record *calls.Reader
	own    []*calls.Call // of the last session in the file
	seed   maphash.Seed
	parser jsontape.Parser
}

// open opens a record. Where it returns a reason instead of a reader, nobody can know what the
// model was given.
func open(path string, earlier int, participant string) (r *reader, unknown string, err error) {
	record, err := calls.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || path == "":
		return nil, "the model calls were not recorded", nil
	case err != nil:
		return nil, "", err
	}
	if damage := record.Damage(); damage != "" {
		return nil, damage, record.Close()
	}
	r = &reader{record: record, seed: maphash.MakeSeed()}
	all := record.Calls()
	all = all[min(earlier, len(all)):]
	for i := range all {
		call := &all[i]
		if participant != "" && call.Participant != participant || !isTurn(call) {
			continue
		}
		if len(r.own) > 0 && call.Session != r.own[0].Session {
			if call.Session < r.own[0].Session {
				continue
			}
			r.own = nil
		}
		r.own = append(r.own, call)
	}
	if len(r.own) == 0 {
		return nil, "no model call is in the record", record.Close()
	}
	return r, "", nil
}

// isTurn reports whether a call asks a model for a reply; others count tokens or list models.
func isTurn(call *calls.Call) bool {
	path, _, _ := strings.Cut(call.Path, "?")
	for _, ending := range []string{
		"/messages", "/responses", "/chat/completions", ":generateContent", ":streamGenerateContent",
	} {
		if strings.HasSuffix(path, ending) {
			return true
		}
	}
	return false
}

// reached reports whether a model has seen the request.
func reached(call *calls.Call) bool {
	switch call.Outcome {
	case calls.OK, calls.Cut, calls.Disconnected, calls.Replayed:
		return true
	}
	return false
}

// first finds the first request that carries a turn and offers tools. Agents ask for titles and try
// their quota before it, without tools. An agent that has no tools at all starts with its first
// request.
func (r *reader) first() (q *request, unknown string) {
	var spare *request
	for _, onlyReached := range []bool{true, false} { // a request that failed is better than none
		for _, call := range r.own {
			if onlyReached && !reached(call) {
				continue
			}
			body, err := r.record.Body(call.Request)
			if err != nil {
				unknown = whyNoBody(call, err)
				if call.Tools > 0 {
					return nil, unknown
				}
				continue
			}
			q, ok := parseRequest(&r.parser, body)
			switch {
			case !ok || q.turns == 0 && q.stored == "":
			case len(q.tools) > 0:
				return q, ""
			case spare == nil:
				spare = q
			}
		}
		if spare != nil {
			return spare, ""
		}
	}
	if unknown == "" {
		unknown = "no recorded model call has a conversation"
	}
	return nil, unknown
}

// whyNoBody says why the body of a request cannot be read.
func whyNoBody(call *calls.Call, err error) string {
	switch {
	case call.Request != nil && call.Request.Omitted != "":
		return "the request was not recorded: " + call.Request.Omitted
	case errors.Is(err, calls.ErrNoBody):
		return "the model calls were recorded without their bodies; use --record bodies"
	}
	return fmt.Sprintf("the record of model calls is damaged: %v", err)
}
