package model

import (
	"context"
	"errors"
	"io"

	"github.com/fit-eval/fit/internal/model/wire"
)

// readStream reads a streamed reply to its end.
func (c *client) readStream(ctx context.Context, body io.Reader, emit func(StreamEvent)) (Response, error) {
	events, acc := wire.NewEventReader(body), c.codec.accumulator()
	for !acc.done() {
		event, err := events.Next()
		if errors.Is(err, io.EOF) && acc.mayEnd() {
			break
		}
		switch {
		case errors.Is(err, io.EOF):
			return Response{}, &Error{
				Kind:       KindNetwork,
				Message:    "the stream ended before the reply was complete",
				Retryable:  true,
				RetryAfter: -1,
			}
		case errors.Is(err, wire.ErrEventTooLarge):
			return Response{}, &Error{Kind: KindProtocol, Err: err, RetryAfter: -1}
		case err != nil:
			return Response{}, networkError(ctx, err)
		}
		deltas, err := acc.Add(event)
		if err != nil {
			return Response{}, streamError(err)
		}
		for _, d := range deltas {
			emit(StreamEvent{
				Type:  eventTypes[d.Kind],
				Index: d.Index,
				Text:  d.Text,
				ID:    d.ID,
				Name:  d.Name,
			})
		}
	}
	reply, err := acc.response()
	if err != nil {
		return Response{}, streamError(err)
	}
	return reply, nil
}

var eventTypes = map[wire.DeltaKind]EventType{
	wire.DeltaText: EventText, wire.DeltaThinking: EventThinking, wire.DeltaToolStart: EventToolStart,
	wire.DeltaToolInput: EventToolInput,
}

// emitWhole emits the events of a reply that was requested as a stream and came in one piece, as
// some servers do.
func emitWhole(reply Response, emit func(StreamEvent)) {
	for i, b := range reply.Blocks {
		switch {
		case b.Type == BlockText:
			emit(StreamEvent{Type: EventText, Index: i, Text: b.Text})
		case b.Type == BlockThinking && b.Text != "":
			emit(StreamEvent{Type: EventThinking, Index: i, Text: b.Text})
		case b.Type == BlockToolCall && b.Call != nil:
			emit(StreamEvent{
				Type:  EventToolStart,
				Index: i,
				ID:    b.Call.ID,
				Name:  b.Call.Name,
			})
			emit(StreamEvent{Type: EventToolInput, Index: i, Text: string(b.Call.Input)})
		}
	}
}

// streamError classifies what went wrong with a reply that had begun well.
func streamError(err error) error {
	if api, ok := errors.AsType[*wire.APIError](err); ok {
		return classify(0, api)
	}
	return &Error{
		Kind:       KindProtocol,
		Err:        err,
		Retryable:  true,
		RetryAfter: -1,
	}
}

// networkError wraps a failure of the connection. The retry loop checks whether the caller
// cancelled.
func networkError(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilence) {
		err = errSilence
	}
	return &Error{
		Kind:       KindNetwork,
		Err:        err,
		Retryable:  true,
		RetryAfter: -1,
	}
}

// watchedReader reports every read that brought something.
type watchedReader struct {
	r        io.Reader
	progress func()
}

func (w *watchedReader) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 {
		w.progress()
	}
	return n, err
}
