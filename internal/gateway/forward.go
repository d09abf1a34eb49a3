package gateway

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/model"
	"github.com/fit-eval/fit/internal/model/wire"
	"github.com/fit-eval/fit/internal/retry"
	"github.com/fit-eval/fit/session"
)

const (
	// maxReply bounds a reply. A model's is far smaller; a server that sends more is not a model.
	maxReply = 64 << 20
	// maxErrorBody bounds an error reply, which is read as a whole.
	maxErrorBody = 1 << 20
)

// errSilent ends a call whose upstream has fallen silent.
var errSilent = errors.New("the model's endpoint was silent for too long")

// forward passes the call on to the upstream and the reply back. What a model says is not changed
// on the way; the key is taken out of errors, and of everything that is recorded.
func (x *exchange) forward(w http.ResponseWriter, cancel context.CancelCauseFunc) {
	to, ok := x.upstream()
	if !ok {
		x.refuse(w, &refusal{
			http.StatusNotFound,
			"this participant has no endpoint for " + x.call.Path + "; its agent speaks another protocol",
		})
		return
	}
	released := x.seat.hold()
	x.hide = to.hide
	reservation, err := x.seat.member.Account.Reserve(x.r.Context(), Estimate{
		Model:    x.asked.pricedAs(x.asked.Model),
		Protocol: x.route.protocol,
		Body:     x.body,
		Paid:     x.route.Paid,
	})
	var refused *BudgetError
	switch {
	case errors.As(err, &refused):
		released()
		x.stop(w, err)
		return
	case err != nil:
		released()
		x.heldBack = true
		x.ended(w, to, err)
		return
	}
	x.reservation = reservation
	release, err := x.config().Rate.Acquire(x.r.Context(), to.provider(), to.key(), x.asked.Model)
	released()
	if err != nil {
		x.heldBack = true
		x.ended(w, to, err)
		return
	}
	status, retryAfter := 0, time.Duration(0)
	defer func() { release(status, retryAfter) }()

	idle := time.AfterFunc(x.config().IdleTimeout, func() { cancel(errSilent) })
	defer idle.Stop()
	resp, err := x.send(to)
	if err != nil {
		x.ended(w, to, err)
		return
	}
	defer resp.Body.Close()
	status, retryAfter = resp.StatusCode, max(0, retry.Asked(resp.Header, x.config().Now()))
	x.call.ID = cmp.Or(resp.Header.Get("Request-Id"), resp.Header.Get("X-Request-Id"))
	x.answer(w, to, resp, func() {
		idle.Reset(x.config().IdleTimeout)
		if x.observer == nil || !x.observer.stream {
			x.heardMs = x.elapsed()
		}
	})
	if x.observer != nil && strings.Contains(x.observer.failure, "overloaded") {
		status = statusOverloaded
	}
}

// send sends the call. Where a connection that was used before ends without a reply, the transport
// sends it once more: the model may have been asked before, so this counts as a call that failed
// and was repeated.
func (x *exchange) send(to upstream) (*http.Response, error) {
	var sent atomic.Int64
	r := x.r.WithContext(httptrace.WithClientTrace(x.r.Context(), &httptrace.ClientTrace{
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				sent.Add(1)
			}
		},
	}))
	resp, err := x.seat.gateway.transport.RoundTrip(to.request(r, x.route.path, x.body))
	if again := int(sent.Load()) - 1; x.route.Turn && again > 0 {
		x.seat.resent(again)
	}
	return resp, err
}

// upstream returns the upstream of the call. A list of models is the same for all protocols of one
// endpoint, so any upstream of the member can answer it.
func (x *exchange) upstream() (upstream, bool) {
	if to, ok := x.seat.upstreams[x.route.protocol]; ok || x.route.protocol != "" {
		return to, ok
	}
	for _, protocol := range slices.Concat([]string{Responses, Chat}, model.ProtocolNames()) {
		if to, ok := x.seat.upstreams[protocol]; ok {
			return to, true
		}
	}
	return upstream{}, false
}

// ended answers a call that failed before a reply began.
func (x *exchange) ended(w http.ResponseWriter, to upstream, err error) {
	switch cause := context.Cause(x.r.Context()); {
	case errors.Is(cause, errSilent):
		x.answerFailure(w, http.StatusGatewayTimeout, "%v: %s", errSilent, to.provider())
	case cause != nil:
		x.call.Outcome, x.abort = calls.Disconnected, true // an empty reply would look like a good one
	default:
		x.answerFailure(w, http.StatusBadGateway, "the model's endpoint %s %s: %v", to.provider(), describeFailure(err),
			innermost(err))
	}
}

// describeFailure describes why an upstream gave no reply.
func describeFailure(err error) string {
	var operation *net.OpError
	switch reached := !errors.As(err, &operation) || operation.Op != "dial"; {
	case !reached:
		return "cannot be reached"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), operation != nil:
		return "closed the connection before it answered"
	default:
		return "gave no answer that can be read"
	}
}

// innermost is what is wrong with a connection, without the names of the calls that found it.
func innermost(err error) error {
	if operation := new(net.OpError); errors.As(err, &operation) {
		err = operation.Err
	}
	if call := new(os.SyscallError); errors.As(err, &call) {
		err = call.Err
	}
	return err
}

// answer passes the reply of the upstream on, if it can come from a model.
func (x *exchange) answer(w http.ResponseWriter, to upstream, resp *http.Response, alive func()) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // empty where it cannot be read
	body, err := decoded(resp)
	isJSON := kind == "application/json" || strings.HasSuffix(kind, "+json")
	switch {
	case err != nil:
		x.answerFailure(w, http.StatusBadGateway, "the model's endpoint %s: %v", to.provider(), err)
	case resp.StatusCode < 200:
		x.refuse(w, &refusal{http.StatusBadGateway, fmt.Sprintf("the model's endpoint %s answered with status %d, "+
			"which is not a model's reply; is the address right?", to.provider(), resp.StatusCode)})
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		x.refuse(w, &refusal{http.StatusBadGateway, redirected(to, resp)})
	case resp.StatusCode >= 400:
		x.passError(w, to, resp, body, isJSON)
	case !isJSON && kind != "text/event-stream":
		x.refuse(w, &refusal{
			http.StatusBadGateway,
			fmt.Sprintf("the model's endpoint %s answered with %s, which is not a model's reply; is the address "+
				"right?",
				to.provider(), cmp.Or(kind, "a body without a type")),
		})
	case resp.ContentLength > maxReply:
		x.refuse(w, &refusal{http.StatusBadGateway, tooLarge(to)})
		x.call.Outcome = calls.Cut
	case isJSON:
		x.passWhole(w, to, resp, body, alive)
	default:
		x.pass(w, to, resp, body, alive)
	}
}

func tooLarge(to upstream) string {
	return fmt.Sprintf("the model's endpoint %s sent more than %d MiB", to.provider(), maxReply>>20)
}

// redirected returns the error for a reply that redirects the call. Following it would show the key
// elsewhere.
func redirected(to upstream, resp *http.Response) string {
	where := ""
	if target, err := resp.Location(); err == nil {
		where = " to " + target.Scheme + "://" + target.Host
	}
	return fmt.Sprintf("the model's endpoint %s answered with status %d%s, which is not followed; name the final "+
		"address as the model URL", to.provider(), resp.StatusCode, where)
}

// decoded returns the body of a reply without its compression, which was not requested.
func decoded(resp *http.Response) (io.Reader, error) {
	switch encoding := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))); encoding {
	case "", "identity":
		return resp.Body, nil
	case "gzip", "x-gzip":
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength = -1
		reader, err := gzip.NewReader(resp.Body)
		if err != nil {
			return nil, fmt.Errorf("its compressed reply cannot be read: %w", err)
		}
		return reader, nil
	default:
		return nil, fmt.Errorf("it compressed its reply with %q, though it was asked not to", encoding)
	}
}

// passError passes an error reply on. An error that is not in the protocol's form, such as the page
// of a proxy on the way, is converted.
func (x *exchange) passError(w http.ResponseWriter, to upstream, resp *http.Response, body io.Reader, isJSON bool) {
	content, err := io.ReadAll(io.LimitReader(body, maxErrorBody))
	if err != nil && context.Cause(x.r.Context()) != nil {
		x.ended(w, to, err)
		return
	}
	content = []byte(to.hide(string(content)))
	x.failure = wire.DecodeError(content)
	x.call.Status, x.call.Error = resp.StatusCode, x.failure.Error()
	x.call.FirstByteMs = x.elapsed()
	to.header(w.Header(), resp.Header)
	w.Header().Del("Content-Length")
	x.keep(content)
	if !isJSON {
		writeError(w, x.route.protocol, resp.StatusCode, fmt.Sprintf("the model's endpoint %s answered: %s",
			to.provider(), x.call.Error))
		return
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(content) // a client that has gone needs no answer
}

// copyHeader copies what concerns the client.
func copyHeader(to, from http.Header) {
	from = from.Clone()
	removeHopHeaders(from)
	from.Del("Alt-Svc") // the upstream's other addresses are not for the agent
	maps.Copy(to, from)
}

// pieces are buffers for passing replies on.
var pieces = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// passWhole passes on a reply that is not a stream. It reads all of it first: a client cannot
// distinguish half of it from all of it.
func (x *exchange) passWhole(
	w http.ResponseWriter, to upstream, resp *http.Response, body io.Reader, alive func(),
) {
	x.observer = &observer{protocol: x.route.wire()}
	content, err := io.ReadAll(io.LimitReader(&notifyingReader{body, x.firstByte(alive)}, maxReply+1))
	switch {
	case err != nil && context.Cause(x.r.Context()) != nil:
		x.ended(w, to, err)
		return
	case err != nil:
		x.answerFailure(w, http.StatusBadGateway, "the model's endpoint %s broke off its reply after %d bytes: %v",
			to.provider(), len(content), err)
		x.call.Outcome = calls.Cut // a model may have answered, which costs
		return
	case len(content) > maxReply:
		x.refuse(w, &refusal{http.StatusBadGateway, tooLarge(to)})
		x.call.Outcome = calls.Cut
		return
	}
	x.call.Status = resp.StatusCode
	to.header(w.Header(), resp.Header)
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	w.WriteHeader(resp.StatusCode)
	_, failed := w.Write(content)
	x.observer.Write(content)
	x.keep(content)
	x.complete()
	if failed != nil {
		x.call.Outcome = calls.Disconnected
	}
}

// firstByte returns a function to call for each piece of a reply; it records the first arrival.
func (x *exchange) firstByte(alive func()) func() {
	first := true
	return func() {
		alive()
		if first {
			first, x.call.FirstByteMs = false, x.elapsed()
		}
	}
}

// notifyingReader says of every piece that is read.
type notifyingReader struct {
	io.Reader
	piece func()
}

func (h *notifyingReader) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if n > 0 {
		h.piece()
	}
	return n, err
}

// pass passes a stream on as it arrives.
func (x *exchange) pass(w http.ResponseWriter, to upstream, resp *http.Response, body io.Reader, alive func()) {
	x.call.Status = resp.StatusCode
	x.observer = &observer{protocol: x.route.wire(), stream: true}
	to.header(w.Header(), resp.Header)
	w.WriteHeader(resp.StatusCode)
	flush := http.NewResponseController(w).Flush
	_ = flush() // the first write meets the same error
	body = &notifyingReader{body, x.firstByte(func() {
		if !x.observer.complete { // nobody waits for what comes after a reply
			alive()
		}
	})}
	buffer := pieces.Get().(*[]byte)
	defer pieces.Put(buffer)
	var total int64
	for {
		n, err := body.Read(*buffer)
		piece := (*buffer)[:n]
		if n > 0 {
			if total += int64(n); total > maxReply {
				x.cut(errors.New(tooLarge(to)))
				return
			}
			if end := eventEnd(piece); x.gone != nil && end > 0 {
				piece = piece[:end]
			}
			_, failed := w.Write(piece)
			if failed == nil {
				failed = flush()
			}
			before := x.observer.events
			x.observer.Write(piece)
			if x.observer.events > before {
				x.heardMs = x.elapsed()
			}
			x.keep(piece)
			switch {
			case failed != nil && x.observer.complete: // some clients do not wait for the end of the connection
				x.complete()
				return
			case failed != nil:
				x.call.Outcome = calls.Disconnected
				return
			}
			if x.spend(); x.gone != nil && x.observer.boundary {
				x.stopStream(w)
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			x.complete()
			return
		case err != nil:
			x.cut(err)
			return
		}
	}
}

// complete ends a reply that was passed on to its end.
func (x *exchange) complete() {
	x.observer.end()
	_ = x.reservation.Spend(session.TokenUsage{}, x.observer.streamed) // for a reply without usage
	x.call.Error = x.observer.failure
	switch {
	case x.observer.failure != "":
		x.call.Outcome = calls.Failed
	case !x.observer.complete && x.route.Turn:
		x.call.Outcome, x.call.Error = calls.Cut, "it ended before the reply was complete"
	default:
		x.call.Outcome = calls.OK
	}
}

// cut ends a reply that broke off, so that the client sees that it did.
func (x *exchange) cut(err error) {
	if x.observer.complete {
		x.complete()
		return
	}
	cause := context.Cause(x.r.Context())
	if cause != nil && !errors.Is(cause, errSilent) {
		x.call.Outcome, x.abort = calls.Disconnected, true // by the client, or because we close
		return
	}
	if cause != nil {
		err = cause
	}
	x.call.Outcome, x.call.Error, x.abort = calls.Cut, err.Error(), true
}

// spend reports to the account what the reply has used so far.
func (x *exchange) spend() {
	if x.gone != nil || x.reservation == nil || !x.observer.stream || x.observer.complete {
		return
	}
	var used session.TokenUsage
	if said := x.observer.usage(); said != nil {
		used = *said
	}
	x.gone = x.reservation.Spend(used, x.observer.streamed)
}

// stopStream ends a stream whose money is used up, between two events, with an error that the
// client understands.
func (x *exchange) stopStream(w http.ResponseWriter) {
	failure := wire.APIError{Message: limitRefusal}
	if x.route.protocol == Responses {
		failure.Code = "invalid_prompt" // the one code after which no agent retries
	}
	event := x.route.wire().ErrorEvent(http.StatusBadRequest, x.call.Model, failure)
	_, _ = event.WriteTo(w) // a client that has gone needs no answer
	x.call.Outcome, x.call.Error = calls.Budget, x.gone.Error()
	x.seat.stopped(x.gone)
}
