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

// asked is what the gateway reads of a request.
type asked struct {
	Model  string            `json:"model"`
	Stream bool              `json:"stream"`
	Tools  []json.RawMessage `json:"tools"`
	// Messages, Contents or Input are the conversation.
	Messages []json.RawMessage `json:"messages"`
	Contents []json.RawMessage `json:"contents"`
	Input    json.RawMessage   `json:"input"`
}

// length is how long the conversation is.
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
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	if r.Body == nil || r.ContentLength == 0 {
		return nil, nil
	}
	var body bytes.Buffer
	if r.ContentLength > 0 && r.ContentLength <= maxRequest {
		body.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, maxRequest))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &refusal{http.StatusRequestEntityTooLarge, "the request is larger than 64 MiB"}
	case err != nil:
		return nil, &refusal{http.StatusBadRequest, "the request ended before it was complete"}
	}
	return body.Bytes(), nil
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
