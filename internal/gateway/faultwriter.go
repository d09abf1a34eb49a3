package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/lazyregexp"
)

// errFault ends a reply that is cut on purpose.
var errFault = errors.New("cut on purpose")

// faultWriter damages a reply on its way to the agent. The gateway reads the reply, such as its
// usage, before that.
type faultWriter struct {
	http.ResponseWriter
	ctx   context.Context
	fault Fault

	stream  bool
	pending []byte // the beginning of an event, or the whole of a reply that is not streamed
	events  int
	cut     bool
}

// injectFault lets a fault happen to the call.
func (x *exchange) injectFault(w http.ResponseWriter, fault Fault, forward func(http.ResponseWriter)) {
	switch {
	case fault.Kind == "":
		forward(w)
		return
	case fault.Status > 0:
		if fault.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(fault.RetryAfter.Seconds())))
		}
		x.call.Status = fault.Status
		writeError(w, x.route.protocol, fault.Status, cmp.Or(http.StatusText(fault.Status), "Overloaded"))
	default:
		broken := &faultWriter{ResponseWriter: w, ctx: x.r.Context(), fault: fault}
		forward(broken)
		x.abort = x.abort || broken.end() != nil
	}
	x.call.Outcome, x.call.Error = calls.Fault, "on purpose: "+fault.Kind
	x.seat.faulted.Store(true)
}

// Unwrap lets a response controller flush.
func (w *faultWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter. The length of the reply is not what it was.
func (w *faultWriter) WriteHeader(status int) {
	w.Header().Del("Content-Length")
	w.stream = bytes.HasPrefix([]byte(w.Header().Get("Content-Type")), []byte("text/event-stream"))
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *faultWriter) Write(p []byte) (int, error) {
	w.pending = append(w.pending, p...)
	for w.stream {
		end := eventEnd(w.pending)
		if end < 0 {
			break
		}
		if err := w.event(w.pending[:end]); err != nil {
			return 0, err
		}
		w.pending = w.pending[end:]
	}
	return len(p), nil
}

// eventEnd returns where the first event of a stream ends, or -1.
func eventEnd(p []byte) int {
	for _, blank := range []string{"\n\n", "\r\n\r\n"} {
		if at := bytes.Index(p, []byte(blank)); at >= 0 {
			return at + len(blank)
		}
	}
	return -1
}

// event passes one event on.
func (w *faultWriter) event(p []byte) error {
	w.events++
	due := w.events > w.fault.After
	switch {
	case w.fault.Kind == faultCutStream && due:
		w.cut = true
		return errFault
	case w.fault.Kind == faultTruncatedJSON && w.events == w.fault.After+1:
		p = append(bytes.Clone(p[:len(p)/2+len(p)/4]), "\n\n"...)
	case w.fault.Kind == faultSlowTokens:
		if err := w.pause(); err != nil {
			return err
		}
	case w.fault.Kind == faultWrongUsage:
		p = w.fault.miscount(p)
	}
	_, err := w.ResponseWriter.Write(p)
	return err
}

func (w *faultWriter) pause() error {
	timer := time.NewTimer(w.fault.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-w.ctx.Done():
		return context.Cause(w.ctx)
	}
}

// end passes on what is left: the rest of a stream, or a reply that is not streamed.
func (w *faultWriter) end() error {
	rest := w.pending
	switch {
	case w.cut:
		return errFault
	case len(rest) == 0:
		return nil
	case w.stream:
	case w.fault.Kind == faultCutStream:
		rest, w.cut = rest[:len(rest)/2], true
	case w.fault.Kind == faultTruncatedJSON:
		rest = rest[:len(rest)/2]
	case w.fault.Kind == faultSlowTokens:
		if err := w.pause(); err != nil {
			return err
		}
	case w.fault.Kind == faultWrongUsage:
		rest = w.fault.miscount(rest)
	}
	_, err := w.ResponseWriter.Write(rest)
	if w.cut {
		return errFault
	}
	return err
}

// tokenCount finds how many tokens a reply says it used, in the words of every protocol.
var tokenCount = lazyregexp.New(`("(?:(?:[a-z_]*_)?(?:input|output|prompt|completion|total|cached|reasoning)_tokens|[a-zA-Z]+TokenCount)"\s*:\s*)(\d+)`)

// miscount multiplies every count of tokens.
func (f Fault) miscount(p []byte) []byte {
	return tokenCount.Get().ReplaceAllFunc(p, func(found []byte) []byte {
		parts := tokenCount.Get().FindSubmatch(found)
		count, err := strconv.ParseFloat(string(parts[2]), 64)
		if err != nil {
			return found
		}
		return strconv.AppendInt(bytes.Clone(parts[1]), int64(math.Round(count*f.Factor)), 10)
	})
}
