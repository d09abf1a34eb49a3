package query

import (
	"context"
	"encoding/json"

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
