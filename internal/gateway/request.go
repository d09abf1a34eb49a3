package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/fit-eval/fit/internal/jsontape"
)

// maxRequest bounds the body of a request. The vendors accept 32 MiB.
const maxRequest = 64 << 20

// announcedLimit limits the memory that is allocated for the announced length of a request.
const announcedLimit = 256 << 10

// asked holds the fields of a request that the gateway reads.
type asked struct {
	Model  string            `json:"model"`
	Stream bool              `json:"stream"`
	Tools  []json.RawMessage `json:"tools"`
	// Messages, Contents or Input are the conversation.
	Messages []json.RawMessage `json:"messages"`
	Contents []json.RawMessage `json:"contents"`
	Input    json.RawMessage   `json:"input"`
	// ServiceTier and Speed say how fast the answer should be.
	ServiceTier string `json:"service_tier"`
	Speed       string `json:"speed"`
}

// pricedAs returns the name under which a model has its price. A service that is faster than the
// ordinary one costs more; it needs its own name in a price file.
func (a *asked) pricedAs(model string) string {
	for _, fast := range []string{"priority", "fast"} {
		if a.ServiceTier == fast || a.Speed == fast {
			return model + " (" + fast + ")"
		}
	}
	return model
}

// length returns how long the conversation is.
func (a *asked) length() int {
	n := len(a.Messages) + len(a.Contents)
	input, _ := jsontape.Parse(a.Input)
	for range input.Elements() {
		n++
	}
	if input.Kind() == jsontape.String {
		n++
	}
	return n
}

// readBody reads the whole request: it is counted, recorded and compared before it is passed on.
func (x *exchange) readBody(w http.ResponseWriter) *refusal {
	r := x.r
	if r.Body == nil || r.ContentLength == 0 {
		return nil
	}
	var body bytes.Buffer
	if r.ContentLength > 0 { // a client need not send what it announces
		body.Grow(int(min(r.ContentLength, announcedLimit)) + bytes.MinRead)
	}
	counted := &countedBody{Reader: http.MaxBytesReader(w, r.Body, maxRequest), x: x}
	_, err := body.ReadFrom(counted)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return &refusal{http.StatusRequestEntityTooLarge, "the request is larger than 64 MiB"}
	case errors.Is(err, errTooMuch):
		return &refusal{http.StatusRequestEntityTooLarge, errTooMuch.Error()}
	case err != nil:
		return &refusal{http.StatusBadRequest, "the request ended before it was complete"}
	}
	x.body = body.Bytes()
	return nil
}

// maxInFlight bounds the requests of one member in flight.
const maxInFlight = 4 * maxRequest

var errTooMuch = errors.New("this participant's in-flight requests exceed 256 MiB")

// countedBody counts the bytes that a member has in flight.
type countedBody struct {
	io.Reader
	x *exchange
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.x.size += int64(n)
	if b.x.seat.underWay.Add(int64(n)) > maxInFlight {
		return n, errTooMuch
	}
	return n, err
}

func setBody(r *http.Request, body []byte) {
	r.ContentLength = int64(len(body))
	r.Header.Del("Content-Length")
	r.Body, r.GetBody = http.NoBody, nil
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
}
