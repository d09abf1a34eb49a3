package scripted

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/model/wire"
)

// Options are the settings of a server.
type Options struct {
	// Vars are added to the variables of every script and win over them.
	Vars map[string]string
	// Log, where set, is written one line of JSON per request. LogBodies puts the requests' bodies
	// in, which hold the whole conversation.
	Log       io.Writer
	LogBodies bool
	// OnRequest, where set, is called with every request before its answer begins, so that a client
	// with an answer knows that its request was counted; Bytes and DurationMs of an answer are only
	// in the log. Calls do not overlap.
	OnRequest func(Record)
	// Now replaces the clock of the log in tests.
	Now func() time.Time
}

// server answers requests from scripts.
type server struct {
	scripts map[string]*Script
	opts    Options
	log     *requestLog

	mu       sync.Mutex
	attempts map[string]int // requests seen per state of a conversation
}

// NewServer returns a handler that serves each script under /s/NAME, and the script named ""
// without a prefix. The scripts must come from Load, Parse or New.
func NewServer(scripts map[string]*Script, opts Options) http.Handler {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	ready := map[string]*Script{}
	for name, script := range scripts {
		own := *script
		own.Vars = map[string]string{}
		for _, vars := range []map[string]string{script.Vars, opts.Vars} {
			maps.Copy(own.Vars, vars)
		}
		ready[name] = &own
	}
	return &server{
		scripts:  ready,
		opts:     opts,
		log:      newRequestLog(opts),
		attempts: map[string]int{},
	}
}

// maxRequestSize bounds a request: agents send whole conversations, but not libraries.
const maxRequestSize = 128 << 20

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at, path := splitPath(r.URL.Path)
	record := &Record{
		Time:   s.opts.Now().UnixMilli(),
		Method: r.Method,
		Path:   r.URL.Path,
		Script: at.script,
		Key:    at.key,
		Seed:   at.seed,
	}
	out := &countingWriter{ResponseWriter: w, status: http.StatusOK}
	start := s.opts.Now()
	out.begins = func(status int) {
		record.Status = status
		s.log.request(*record)
	}
	defer func() {
		out.begin(out.status)
		record.Status, record.Bytes = out.status, out.written
		record.DurationMs = s.opts.Now().Sub(start).Milliseconds()
		s.log.add(*record)
	}()
	body, err := io.ReadAll(http.MaxBytesReader(out, r.Body, maxRequestSize))
	if err != nil {
		record.Error = "read request: " + err.Error()
		writeJSON(out, http.StatusRequestEntityTooLarge,
			wire.AnthropicErrorBody(http.StatusRequestEntityTooLarge, wire.APIError{Message: "request is too large"}))
		return
	}
	record.body(body, s.opts.LogBodies)

	script, ok := s.scripts[at.script]
	if !ok {
		s.notFound(out, record, fmt.Sprintf("no script is called %q", at.script))
		return
	}
	if !strings.HasPrefix(path, "/v1") {
		path = "/v1" + path
	}
	absent := "there is nothing at " + r.Method + " " + r.URL.Path
	for _, spoken := range protocols {
		to, ok := spoken.Route(path)
		if !ok || r.Method != http.MethodPost {
			continue
		}
		to.Stream = to.Stream && r.URL.Query().Get("alt") == "sse"
		switch {
		case to.Turn:
			s.answer(out, r, exchange{spoken, to, script, at, body, record})
			return
		case to.Counts:
			writeJSON(out, http.StatusOK, fmt.Appendf(nil, spoken.counted, max(1, len(body)/4)))
			return
		case to.Unknown:
			record.Error = absent
			writeJSON(out, http.StatusNotFound, spoken.ErrorBody(http.StatusNotFound, wire.APIError{Message: absent}))
			return
		}
	}
	path = strings.TrimPrefix(path, "/v1")
	switch {
	case r.Method == http.MethodHead, path == "", path == "/":
		out.WriteHeader(http.StatusOK) // clients probe whether a server is there
	case path == "/models" || strings.HasPrefix(path, "/models/"):
		writeJSON(out, http.StatusOK, modelsBody(strings.TrimPrefix(path, "/models")))
	default:
		s.notFound(out, record, absent)
	}
}

func (s *server) notFound(w http.ResponseWriter, record *Record, message string) {
	record.Error = message
	writeJSON(w, http.StatusNotFound, wire.AnthropicErrorBody(http.StatusNotFound, wire.APIError{Message: message}))
}

// exchange is one request to a model.
type exchange struct {
	protocol
	route  wire.Route
	script *Script
	at     cell
	body   []byte
	record *Record
}

// answer sends the turn that the script has for a request.
func (s *server) answer(w *countingWriter, r *http.Request, x exchange) {
	x.record.Protocol = x.Info().Name
	if !keyAccepted(x.script.Key, r) {
		writeJSON(w, http.StatusUnauthorized,
			x.ErrorBody(http.StatusUnauthorized, wire.APIError{Message: "invalid API key"}))
		return
	}
	conv, err := x.read(x.body, x.route)
	if err != nil {
		x.record.Error = err.Error()
		writeJSON(w, http.StatusBadRequest, x.ErrorBody(http.StatusBadRequest, wire.APIError{Message: err.Error()}))
		return
	}
	conv.request = sync.OnceValue(func() []string { return stringsIn(x.body) })
	reply := newReply(x.script.pick(conv, x.at), conv, x.script)
	attempt := s.attempt(x.at, reply)
	x.record.Scenario, x.record.Turn = reply.scenario, reply.index
	x.record.Visit, x.record.Attempt = reply.visit, attempt
	x.record.Conversation, x.record.Model, x.record.Stream = reply.conversation, conv.model, conv.stream

	requestID := fmt.Sprintf("req_%s_t%dv%d_%d", reply.conversation, reply.index, reply.visit, attempt)
	w.Header().Set("request-id", requestID)
	w.Header().Set("x-request-id", requestID)
	fault := reply.turn.Fault
	if fault != nil && fault.Times > 0 && attempt > fault.Times {
		fault = nil
	}
	status := http.StatusOK
	if fault != nil && fault.Status != 0 {
		status = fault.Status
	}
	w.begin(status)
	if !pause(r, reply.turn.DelayMs) {
		return
	}
	if fault != nil && fault.Status != 0 {
		x.record.Fault = strconv.Itoa(fault.Status)
		if fault.RetryAfter != "" {
			w.Header().Set("Retry-After", fault.RetryAfter)
		}
		writeJSON(w, fault.Status, x.ErrorBody(fault.Status, fault.apiError()))
		return
	}
	if fault != nil {
		x.record.Fault = fault.Stream
	}
	x.send(w, r, reply, fault)
}

func (f Fault) apiError() wire.APIError {
	e := wire.APIError{
		Type:      f.Type,
		Code:      f.Code,
		Message:   f.Message,
		RequestID: "req_scripted",
	}
	e.Message = cmp.Or(e.Message, "this error is in the script")
	return e
}

// send writes the reply, whole or streamed, spoilt or not.
func (x exchange) send(w *countingWriter, r *http.Request, reply reply, fault *Fault) {
	whole, events := x.render(reply)
	if fault != nil && fault.Stream == "drop" {
		panic(http.ErrAbortHandler) // the server's way to close a connection without an answer
	}
	if !reply.conv.stream {
		x.sendWhole(w, r, whole, fault)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	list := events()
	spoilAt := -1
	if fault != nil {
		spoilAt = min(len(list)-1, fault.After)
		if fault.After == 0 {
			spoilAt = len(list) / 2
		}
	}
	for i, event := range list {
		if i == spoilAt {
			x.failStream(w, r, reply, fault)
			return
		}
		if _, err := event.WriteTo(w); err != nil {
			x.record.Error = "client left: " + err.Error()
			return
		}
		w.flush()
		if event.Delta && !pause(r, reply.turn.ChunkDelayMs) {
			x.record.Error = "client left"
			return
		}
	}
}

// failStream ends a stream the way the fault says.
func (x exchange) failStream(w *countingWriter, r *http.Request, reply reply, fault *Fault) {
	switch fault.Stream {
	case "error":
		if _, err := x.errorEvent(reply, fault.apiError()).WriteTo(w); err != nil {
			x.record.Error = "client left: " + err.Error()
		}
		w.flush()
	case "hang":
		w.flush()
		<-r.Context().Done()
	case "end":
	default:
		w.flush()
		panic(http.ErrAbortHandler)
	}
}

// sendWhole writes a reply that is not streamed. A fault for streams damages it as far as possible.
func (x exchange) sendWhole(w *countingWriter, r *http.Request, whole any, fault *Fault) {
	data, err := json.Marshal(whole)
	if err != nil {
		x.record.Error = "encode reply: " + err.Error()
		writeJSON(w, http.StatusInternalServerError,
			x.ErrorBody(http.StatusInternalServerError, wire.APIError{Message: x.record.Error}))
		return
	}
	switch {
	case fault == nil:
		writeJSON(w, http.StatusOK, data)
	case fault.Stream == "end":
		writeJSON(w, http.StatusOK, data[:len(data)/2])
	case fault.Stream == "error":
		writeJSON(w, http.StatusInternalServerError, x.ErrorBody(http.StatusInternalServerError, fault.apiError()))
	default:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = w.Write(data[:len(data)/2])
		w.flush()
		if fault.Stream == "hang" {
			<-r.Context().Done()
			return
		}
		panic(http.ErrAbortHandler)
	}
}

// attempt counts the requests at the same state of the same conversation, from 1.
func (s *server) attempt(at cell, r reply) int {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %d %d %q %q", at, r.scenario, r.index, r.visit, r.conv.texts(stepPrompt),
		r.conv.texts(stepResult))
	state := hex.EncodeToString(h.Sum(nil))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts[state]++
	return s.attempts[state]
}

func keyAccepted(want string, r *http.Request) bool {
	got := cmp.Or(r.Header.Get("x-api-key"), r.Header.Get("x-goog-api-key"), r.URL.Query().Get("key"),
		strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	return want == "" || subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1
}

// modelsBody lists models in a shape that both vendors' clients read, or describes one.
func modelsBody(id string) []byte {
	describe := func(id string) map[string]any {
		return map[string]any{
			"id": id, "object": "model", "type": "model", "display_name": id, "created_at": "2026-01-01T00:00:00Z",
			"created": created, "owned_by": "script",
		}
	}
	if id = strings.Trim(id, "/"); id != "" {
		return marshal(describe(id))
	}
	return marshal(map[string]any{
		"object": "list", "has_more": false, "first_id": "scripted", "last_id": "scripted",
		"data": []any{describe("scripted")},
	})
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has left needs no answer
}

// pause waits, or reports false where the client leaves first.
func pause(r *http.Request, ms int) bool {
	if ms <= 0 {
		return true
	}
	timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// countingWriter notes the status and size of an answer for the log.
type countingWriter struct {
	http.ResponseWriter
	begins  func(status int) // called once, before the answer
	begun   bool
	status  int
	written int64
}

func (w *countingWriter) begin(status int) {
	if !w.begun {
		w.begun = true
		w.begins(status)
	}
}

func (w *countingWriter) WriteHeader(status int) {
	w.begin(status)
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *countingWriter) Write(p []byte) (int, error) {
	w.begin(w.status)
	n, err := w.ResponseWriter.Write(p)
	w.written += int64(n)
	return n, err
}

func (w *countingWriter) flush() {
	_ = http.NewResponseController(w.ResponseWriter).Flush() // a recorder in a test has nothing to flush
}
