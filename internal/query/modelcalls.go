package query

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/internal/query/internal/scan"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// ModelCall is a call of a model that the gateway saw.
type ModelCall struct {
	Lane string `json:"lane"`
	session.ModelCall
}

// ModelCalls lists the calls of the wanted lanes, in the order in which they ended.
func (t *Trace) ModelCalls(ctx context.Context) ([]ModelCall, error) {
	var found []ModelCall
	lanes := map[string][]session.ModelCall{}
	_, err := t.walk(ctx, plan{
		lifecycle: func(ev *scan.Event) {
			v, _ := jsontape.Parse(ev.Native)
			if v.TextOf("type") != trace.TypeModelCall {
				return
			}
			call, lane, ok := modelCall(ev.Native, v)
			if !ok || !t.opts.wants(lane) {
				return
			}
			call.Error = t.opts.Redactor.String(call.Error)
			found = append(found, ModelCall{Lane: lane, ModelCall: session.ModelCall{Call: call}})
			lanes[lane] = append(lanes[lane], session.ModelCall{Call: call})
		},
	})
	if err != nil {
		return nil, err
	}
	for _, own := range lanes {
		session.NumberTurns(own)
	}
	for i := range found {
		own := lanes[found[i].Lane]
		found[i].Turn, lanes[found[i].Lane] = own[0].Turn, own[1:]
	}
	return found, nil
}

// Exchange is a call of a model with what was sent and what came back.
type Exchange struct {
	Call     ModelCall `json:"call"`
	Request  string    `json:"request"` // as it was sent; empty where it was not kept
	Response string    `json:"response"`
	// Missing says why a body is not there.
	Missing string `json:"missing,omitempty"`
}

// Exchange returns a call by its number in the list of ModelCalls, with its bodies from the record
// beside the trace; nil if there is no such call.
func (t *Trace) Exchange(ctx context.Context, n int) (*Exchange, error) {
	all, err := t.ModelCalls(ctx)
	if err != nil || n < 0 || n >= len(all) {
		return nil, err
	}
	e := &Exchange{Call: all[n]}
	record, err := calls.Open(calls.Path(t.Path))
	if errors.Is(err, fs.ErrNotExist) {
		e.Missing = "there is no record of the calls beside the trace"
		return e, nil
	}
	if err != nil {
		return nil, err
	}
	defer record.Close()
	kept := slices.IndexFunc(record.Calls(), func(c calls.Call) bool {
		return c.Participant == e.Call.Lane && c.Seq == e.Call.Seq && c.StartMs == e.Call.StartMs
	})
	if kept < 0 {
		e.Missing = "the record beside the trace does not have this call"
		return e, nil
	}
	call := &record.Calls()[kept]
	for _, part := range []struct {
		text *string
		body *calls.Body
	}{{&e.Request, call.Request}, {&e.Response, call.Response}} {
		content, err := record.Body(part.body)
		switch {
		case errors.Is(err, calls.ErrNoBody):
			e.Missing = "bodies were not kept: run with --record bodies"
		case err != nil:
			e.Missing = err.Error()
		default:
			*part.text = t.opts.Redactor.String(strings.ToValidUTF8(string(content), "\uFFFD"))
		}
	}
	return e, nil
}

// modelCall reads the event of a call and returns the lane that it belongs to.
func modelCall(event []byte, v jsontape.Value) (call calls.Call, lane string, ok bool) {
	lane = unescape(v.Get("agent").Inner())
	ok = lane != "" && json.Unmarshal(event, &call) == nil
	return call, lane, ok
}

// took passes the calls of a lane to its account.
func (l *laneState) took(fold *session.Fold) {
	for _, call := range l.calls {
		fold.ModelCall(call)
	}
}

func addOptional(sum, more *float64) *float64 {
	if more == nil {
		return sum
	}
	if sum != nil {
		return new(*sum + *more)
	}
	return more
}
