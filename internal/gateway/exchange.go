package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/model/wire"
	"github.com/fit-eval/fit/session"
)

// exchange is one call: the request of a member and the answer to it.
type exchange struct {
	seat  *Seat
	route route
	r     *http.Request
	body  []byte
	size  int64 // of the part of the request that has arrived
	asked asked
	began time.Time
	call  calls.Call

	reservation *Reservation
	observer    *observer
	heldBack    bool                // it never left the gateway
	heardMs     int64               // when the upstream last said something
	failure     *wire.APIError      // the service's error reply; nil: it gave none
	kept        spool               // the reply, where it is recorded
	gone        error               // the money is used up, and the reply must end after the current event
	abort       bool                // the client must see that the reply is not complete
	hide        func(string) string // takes the key out of what is recorded; nil: none was sent
}

func newExchange(seat *Seat, to route, r *http.Request) *exchange {
	now := seat.gateway.cfg.Now()
	return &exchange{
		seat:  seat,
		route: to,
		r:     r,
		began: now,
		kept:  spool{dir: seat.gateway.scratch()},
		call: calls.Call{
			Participant: seat.member.Name,
			Cell:        seat.member.Cell,
			Protocol:    to.protocol,
			Path:        to.version + to.path,
			StartMs:     now.UnixMilli(),
			Outcome:     calls.Failed,
		},
	}
}

func (x *exchange) config() Config { return x.seat.gateway.cfg }

func (x *exchange) elapsed() int64 { return x.config().Now().Sub(x.began).Milliseconds() }

// serve takes the call through all steps and records it.
func (x *exchange) serve(w http.ResponseWriter) {
	x.seat.begin()
	defer x.seat.end()
	ctx, cancel := context.WithCancelCause(x.r.Context())
	defer cancel(nil)
	x.r = x.r.WithContext(ctx)
	defer func() { x.seat.underWay.Add(-x.size) }()
	refused := x.readBody(w)
	if refused == nil {
		refused = x.read()
	}
	if refused != nil {
		x.refuse(w, refused)
		x.finish()
		return
	}
	number, allowed := x.seat.count(x.body, x.route.Turn, &x.call)
	switch {
	case !allowed:
		x.stop(w, ErrTurnLimit)
	case !x.replayed(w):
		var fault Fault
		if x.route.Turn && x.seat.member.FaultKey != "" {
			fault = x.config().Faults.Draw(x.seat.member.FaultKey, number)
		}
		x.injectFault(w, fault, func(w http.ResponseWriter) { x.forward(w, cancel) })
	}
	x.finish()
	if x.abort {
		panic(http.ErrAbortHandler) // the one way to end a reply visibly before its end
	}
}

// read finds out what the request asks for, and removes what it may not ask for.
func (x *exchange) read() *refusal {
	if len(x.body) == 0 {
		return nil
	}
	if refused := x.decode(); refused != nil {
		return refused
	}
	if x.route.Model != "" {
		x.asked.Model, x.asked.Stream = x.route.Model, x.route.Stream
	}
	x.call.Model, x.call.Stream = x.asked.Model, x.asked.Stream
	x.call.Tools, x.call.Messages = len(x.asked.Tools), x.asked.length()
	work, err := findVendorWork(x.route.protocol, x.body)
	if err != nil {
		return &refusal{http.StatusBadRequest, "fit's gateway: " + err.Error()}
	}
	x.call.ServerTools = work.kinds
	if searchesItself.MatchString(x.asked.Model) {
		x.call.ServerTools = append(x.call.ServerTools, "a model that searches")
		if x.config().DenyServerTools {
			return &refusal{http.StatusBadRequest, fmt.Sprintf("fit's gateway: the model %s searches the web itself, "+
				"and tools of the vendor are denied; choose another", display.Name(x.asked.Model))}
		}
	}
	if len(work.kinds) > 0 && x.config().DenyServerTools {
		x.body, x.call.ToolsDenied = work.body, true
	}
	return nil
}

// decode reads the request. A request that we cannot read is refused, because we can neither count
// it nor remove tools from it, while the upstream may still understand it; the upstream refuses
// misplaced fields.
func (x *exchange) decode() *refusal {
	if coding := x.r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return &refusal{
			http.StatusUnsupportedMediaType,
			fmt.Sprintf("fit's gateway: the request is compressed (%s), and only plain requests can be read", coding),
		}
	}
	err := json.Unmarshal(x.body, &x.asked)
	var syntax *json.SyntaxError
	if begin := bytes.TrimLeft(x.body, " \t\r\n"); errors.As(err, &syntax) || !bytes.HasPrefix(begin, []byte("{")) ||
		!utf8.Valid(x.body) {
		return &refusal{http.StatusBadRequest, "fit's gateway: the request is not a JSON object in UTF-8"}
	}
	return nil
}

// count numbers the calls that carry a turn from 0, and notices one that is tried again because it
// failed. It reports whether the turn is one of those that the member may have.
func (s *Seat) count(body []byte, turn bool, call *calls.Call) (number int, allowed bool) {
	sum := sha256.Sum256(body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	call.Seq = s.seq
	if !turn {
		return 0, true
	}
	s.asked++
	if sum == s.failed {
		s.repeats++
		call.Retry = s.repeats
		s.failures, s.refusals = s.failures+s.refusals, 0
	}
	if sum != s.failed || s.returned {
		s.turns++
	}
	return s.asked - 1, s.maxTurns == 0 || s.turns <= s.maxTurns
}

// resent notes that a call that carries a turn was sent more often than the member asked.
func (s *Seat) resent(times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures += times
}

// ended notes whether a call that carries a turn failed. The same request after one that succeeded
// is another turn.
func (s *Seat) ended(body []byte, call *calls.Call, failure *wire.APIError, heardMs int64) {
	sum := sha256.Sum256(body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.troubled, s.lost = serviceFailed(call, failure), false
	s.rejected = failure != nil && failure.Fault(call.Status) == wire.FaultRequest
	if failure != nil && failure.Fault(call.Status) == wire.FaultAccount {
		s.lost = !failure.NoModel(call.Status) || s.answered[call.Model]
	}
	if call.Tools > 0 {
		s.unfinished = s.troubled
	}
	switch {
	case s.troubled:
		s.failures++
	case failure != nil, call.Outcome == calls.Disconnected:
		s.refusals++
	}
	succeeded := call.Outcome == calls.OK || call.Outcome == calls.Replayed && call.Status < 400
	switch {
	case succeeded:
		s.answered[call.Model] = true
		s.unanswered = 0
	case s.troubled:
		s.unanswered += time.Duration(call.EndMs) * time.Millisecond
	case call.Outcome == calls.Disconnected:
		s.unanswered += time.Duration(call.EndMs-heardMs) * time.Millisecond
	}
	// A call that the service failed carried no turn, and some agents change it a little before
	// they try again.
	if !succeeded {
		s.returned = call.Seq > 0 && call.Outcome != calls.Disconnected && call.Outcome != calls.Budget
		if s.returned {
			s.turns = max(0, s.turns-1)
		}
	}
	switch {
	case succeeded && sum == s.failed:
		s.failed, s.repeats = [sha256.Size]byte{}, 0
	case !succeeded && sum != s.failed:
		s.failed, s.repeats = sum, 0
	}
}

// serviceFailed reports whether a call failed because of the service, and not because of the
// request. failure is the service's error reply, if it gave one.
func serviceFailed(call *calls.Call, failure *wire.APIError) bool {
	switch {
	case call.Outcome == calls.Cut:
		return true
	case call.Outcome != calls.Failed && call.Outcome != calls.Replayed:
		return false
	case failure == nil && call.Status >= http.StatusBadRequest:
		failure = &wire.APIError{} // from a record, or our own
	case failure == nil:
		return call.Outcome == calls.Failed
	}
	return failure.Fault(call.Status) == wire.FaultService
}

// replayed answers from the record that the member has, if it has one.
func (x *exchange) replayed(w http.ResponseWriter) bool {
	replay := x.seat.member.Replay
	if replay == nil {
		return false
	}
	recorded, found, err := replay.Answer(Request{
		Protocol: x.route.protocol,
		Path:     x.call.Path,
		Model:    x.asked.Model,
		Body:     x.body,
	})
	switch {
	case err != nil:
		x.refuse(w, &refusal{http.StatusBadRequest, err.Error()})
		return true
	case !found:
		return false
	}
	copyHeader(w.Header(), recorded.Header)
	w.WriteHeader(recorded.Status)
	_, _ = w.Write(recorded.Body) // a client that has gone needs no answer
	x.keep(recorded.Body)
	x.call.Status, x.call.Outcome, x.call.Usage = recorded.Status, calls.Replayed, recorded.Usage
	x.call.FirstByteMs = x.elapsed()
	x.call.CostUSD, x.call.OriginalUSD, x.call.Differs = new(float64), recorded.CostUSD, recorded.Differs
	return true
}

// refuse answers in place of the upstream, so that clients do not retry.
func (x *exchange) refuse(w http.ResponseWriter, f *refusal) {
	x.call.Status, x.call.Error = f.status, f.message
	f.answer(w, x.route.protocol)
}

// answerFailure answers in place of an upstream that gave no usable answer. Agents retry.
func (x *exchange) answerFailure(w http.ResponseWriter, status int, format string, args ...any) {
	x.call.Status, x.call.Error = status, fmt.Sprintf(format, args...)
	writeError(w, x.route.protocol, status, x.call.Error)
}

// stop refuses a call because of a limit. No agent retries after this status.
func (x *exchange) stop(w http.ResponseWriter, limit error) {
	x.refuse(w, &refusal{http.StatusBadRequest, limitRefusal})
	x.call.Outcome, x.call.Error = calls.Budget, limit.Error()
	x.seat.stopped(limit)
}

// keep records a piece of the reply.
func (x *exchange) keep(p []byte) {
	if x.seat.member.Calls != nil && x.kept.length()+int64(len(p)) <= maxReply {
		x.kept.Write(p)
	}
}

// finish settles and records the call.
func (x *exchange) finish() {
	call := &x.call
	call.EndMs = x.elapsed()
	if x.route.Turn {
		x.seat.ended(x.body, call, x.failure, x.heardMs)
		x.seat.gaveUp(x.heldBack)
	}
	var used *session.TokenUsage
	if x.observer != nil {
		if used = x.observer.soFar(); used != nil {
			call.Usage = &calls.UsageJSON{TokenUsage: *used}
		}
		call.Implausible = x.observer.implausible(x.body)
		call.Model, call.Served = cmp.Or(call.Model, x.observer.model), x.observer.model
	}
	if used != nil && used.Partial {
		used = nil
	}
	x.reservation.Settle(used)
	if call.Outcome != calls.Replayed {
		call.CostUSD = x.cost()
	}
	reply := x.kept.bytes()
	if x.hide != nil {
		call.Error, reply = x.hide(call.Error), []byte(x.hide(string(reply)))
		call.Differs = x.hide(call.Differs)
	}
	if redactor := x.config().Redactor; redactor != nil {
		call.Error, call.Differs = redactor.String(call.Error), redactor.String(call.Differs)
	}
	call.Error = display.CutBytes(call.Error, maxError)
	defer x.kept.close()
	x.seat.record.Lock()
	defer x.seat.record.Unlock()
	if writer := x.seat.member.Calls; writer != nil {
		if err := writer.Append(*call, x.body, reply); err != nil {
			call.Error = errors.Join(errors.New(call.Error), fmt.Errorf("record the call: %w", err)).Error()
		}
	}
	x.seat.wire.Add(*call)
	if x.seat.member.OnCall != nil {
		x.seat.member.OnCall(*call)
	}
}

// maxError bounds what is kept of an error.
const maxError = 2000

// cost returns the price of the call; nil is unknown.
func (x *exchange) cost() *float64 {
	used := x.call.Usage
	if used == nil || x.config().Prices == nil {
		return nil
	}
	priced := used.TokenUsage
	priced.TotalTokens = priced.Total()
	usd, known := x.config().Prices(x.asked.pricedAs(x.call.Model), priced, x.call.StartMs)
	if !known {
		return nil
	}
	return &usd
}
