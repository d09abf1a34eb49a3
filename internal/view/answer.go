package view

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/display"
)

// version is that of the endpoints' JSON. Fields are added, never renamed or removed.
const version = 1

// endpoint answers one kind of request with a value that is encoded as JSON, or with raw bytes.
type endpoint func(*http.Request) (any, error)

// raw is an answer that is not JSON.
type raw struct {
	kind    string
	content []byte
	name    string // of a file that the browser saves and does not show; else empty
}

// problem is an error answer.
type problem struct {
	status  int
	message string
	hint    string
}

func (p *problem) Error() string { return p.message }

// notFound returns the problem for something that does not exist.
func notFound(message, hint string) error {
	return &problem{status: http.StatusNotFound, message: message, hint: hint}
}

func badRequest(message string) error {
	return &problem{status: http.StatusBadRequest, message: message}
}

// conflict returns the problem for something that cannot be done now.
func conflict(message, hint string) error {
	return &problem{status: http.StatusConflict, message: message, hint: hint}
}

// unreadable returns the problem for a file that exists and cannot be read.
func unreadable(err error) error {
	return &problem{status: http.StatusUnprocessableEntity, message: err.Error()}
}

// json sends the answer of an endpoint, with an ETag so that the browser need not fetch it again.
func (s *Server) json(answer endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answered, err := encode(answer, r)
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				writeError(w, err)
			}
			return
		}
		w.Header().Set("Content-Type", answered.kind)
		if answered.name != "" {
			w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{
				"filename": answered.name,
			}))
		}
		send(w, r, answered.content, tagOf(answered.content))
	}
}

func encode(answer endpoint, r *http.Request) (raw, error) {
	value, err := answer(r)
	if err != nil {
		return raw{}, err
	}
	if r, ok := value.(raw); ok {
		return r, nil
	}
	body, err := json.Marshal(value)
	return raw{kind: "application/json; charset=utf-8", content: body}, err
}

func send(w http.ResponseWriter, r *http.Request, body []byte, tag string) {
	w.Header().Set("ETag", tag)
	if known := r.Header.Get("If-None-Match"); r.Method == http.MethodGet && strings.Contains(known, tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // a client that has gone needs no answer
}

func tagOf(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// writeError sends a problem as JSON.
func writeError(w http.ResponseWriter, err error) {
	var p *problem
	switch {
	case errors.As(err, &p):
	case errors.Is(err, fs.ErrNotExist):
		p = &problem{status: http.StatusGone, message: "the file no longer exists"}
	default:
		p = &problem{status: http.StatusInternalServerError, message: err.Error()}
	}
	body := map[string]any{"status": p.status, "message": display.Text(p.message)}
	if p.hint != "" {
		body["hint"] = p.hint
	}
	content, err := json.Marshal(map[string]any{"error": body})
	if err != nil {
		content = []byte(`{"error":{"status":500,"message":"the error cannot be shown"}}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(p.status)
	_, _ = w.Write(content)
}

// asset is a file of the front end.
type asset struct {
	content []byte
	kind    string
	tag     string
}

func (s *Server) page(w http.ResponseWriter, r *http.Request) { s.asset("index.html")(w, r) }

func (s *Server) asset(name string) http.HandlerFunc {
	a := s.assets[name]
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", a.kind)
		send(w, r, a.content, a.tag)
	}
}

// quote shows what a stranger sent.
func quote(text string) string { return strconv.Quote(display.Name(text)) }
