package server

import (
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/fit-eval/fit/internal/bridge"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/jsonenc"
)

// Handler answers runs and people.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-store")
		s.mux.ServeHTTP(w, r)
	})
}

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", answer(health))
	mux.HandleFunc("POST /api/callback/{tenant}/{token}", answer(s.callback))
	mux.HandleFunc("GET /api/callback/{tenant}/{token}", answer(s.assign))
	mux.HandleFunc("GET /api/inbox/{tenant}/{run}/{token}", answer(s.inbox))
	mux.HandleFunc("GET /api/threads", s.person(s.listThreads))
	mux.HandleFunc("POST /api/threads", s.person(s.newThread))
	mux.HandleFunc("GET /api/threads/{thread}", s.person(s.showThread))
	mux.HandleFunc("POST /api/threads/{thread}/posts", s.person(s.post))
	mux.HandleFunc("POST /api/threads/{thread}/recess", s.person(s.pause))
	mux.HandleFunc("POST /api/threads/{thread}/resume", s.person(s.resume))
	mux.HandleFunc("POST /api/threads/{thread}/stop", s.person(s.stopRun))
	mux.HandleFunc("POST /api/threads/{thread}/adjourn", s.person(s.adjourn))
	return mux
}

func health(*http.Request) (any, error) { return map[string]string{"status": "ok"}, nil }

// answer sends what a function returns as JSON.
func answer(make func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		value, err := make(r)
		status := http.StatusOK
		if err != nil {
			status, value = problem(w, err)
		}
		content, err := jsonenc.Marshal(value)
		if err != nil {
			status, content = http.StatusInternalServerError, []byte(`{"error":{"message":"the answer cannot be written"}}`)
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(status)
		_, _ = w.Write(content) // who has gone asks again
	}
}

func problem(w http.ResponseWriter, err error) (status int, body any) {
	refused := &refusal{status: http.StatusInternalServerError, message: "the bridge failed; try again"}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &refused):
	case errors.As(err, &tooLarge):
		refused = &refusal{status: http.StatusRequestEntityTooLarge, message: "the request is too large"}
	case errors.Is(err, errClosed):
		refused = &refusal{status: http.StatusServiceUnavailable, message: err.Error(), retry: 1}
	}
	if refused.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(refused.retry))
	}
	return refused.status, map[string]any{"error": map[string]any{"status": refused.status, "message": refused.message}}
}

// read decodes the JSON of a request, in which the token of who sent it is hidden.
func read(r *http.Request, limit int64, into any) error {
	data, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, limit))
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(hidden(string(data), r.PathValue("token"))), into); err != nil {
		return &refusal{status: http.StatusBadRequest, message: "the request is not the expected JSON: " + err.Error()}
	}
	return nil
}

// callback takes a reply, an acknowledgement or the end of a run. It answers when that is on the
// disk; before, nothing has happened and the run sends it again.
func (s *Server) callback(r *http.Request) (any, error) {
	var message bridge.Callback
	if err := read(r, bridge.MaxBody, &message); err != nil {
		return nil, err
	}
	switch {
	case message.Kind != bridge.KindTerminal && message.Seq == nil:
		return nil, &refusal{status: http.StatusBadRequest, message: "a reply needs a seq"}
	case message.Kind == bridge.KindTerminal && message.Terminal == nil:
		return nil, &refusal{status: http.StatusBadRequest, message: "a terminal callback needs a verdict"}
	}
	if err := checkEnd(message.Terminal); err != nil {
		return nil, err
	}
	result := struct {
		OK     bool `json:"ok"`
		Dedupe bool `json:"dedupe,omitempty"`
	}{OK: true}
	err := s.store.change(func(c *change) (err error) {
		result.Dedupe, err = c.callback(r.PathValue("tenant"), r.PathValue("token"), message)
		return err
	})
	return result, err
}

// assignment is what a run that is held elsewhere needs to begin.
type assignment struct {
	CorrelationID string                 `json:"correlation_id"`
	DiscussionID  string                 `json:"discussion_id"`
	Prompt        string                 `json:"prompt"`
	Resume        *harness.ResumeContext `json:"resume_context"`
}

// assign answers a run that asks what it is about.
func (s *Server) assign(r *http.Request) (any, error) {
	var a assignment
	var resume sql.NullString
	err := s.store.reader.One(`SELECT run.id, run.thread, run.task, run.resume FROM token
		JOIN run ON run.id = token.run WHERE token.hash = ? AND token.tenant = ? AND run.state <> ?`,
		[]any{hashed(r.PathValue("token")), r.PathValue("tenant"), runEnded},
		&a.CorrelationID, &a.DiscussionID, &a.Prompt, &resume)
	if err != nil {
		return nil, errNoToken
	}
	if resume.Valid {
		err = json.Unmarshal([]byte(resume.String), &a.Resume)
	}
	return a, err
}

// inbox answers with what people wrote after a seq: immediately if they did, otherwise when they
// do.
func (s *Server) inbox(r *http.Request) (any, error) {
	since, err := number(r, "since")
	if err != nil {
		return nil, err
	}
	var thread string
	err = s.store.reader.One(`SELECT run.thread FROM token JOIN run ON run.id = token.run
		WHERE token.hash = ? AND token.tenant = ? AND run.id = ? AND run.state <> ?`,
		[]any{hashed(r.PathValue("token")), r.PathValue("tenant"), r.PathValue("run"), runEnded}, &thread)
	if err != nil {
		return nil, errNoToken
	}
	timeout := time.NewTimer(bridge.LongPoll)
	defer timeout.Stop()
	for {
		changed := s.nextChange(thread)
		page, err := s.messages(r.PathValue("run"), since)
		if err != nil || len(page.Messages) > 0 {
			return page, err
		}
		select {
		case <-changed:
		case <-timeout.C:
			return page, nil
		case <-r.Context().Done():
			return page, nil
		case <-s.closing:
			return page, nil
		}
	}
}

// messages returns the beginning of what an inbox holds after a seq.
func (s *Server) messages(run string, since int64) (bridge.InboxPage, error) {
	page := bridge.InboxPage{Messages: []bridge.InboxMessage{}}
	rows, err := s.store.reader.Query(`SELECT inbox.seq, post.body, post.author, post.at FROM inbox
		JOIN run ON run.id = inbox.run JOIN post ON post.thread = run.thread AND post.n = inbox.n
		WHERE inbox.run = ? AND inbox.seq > ? ORDER BY inbox.seq`, run, since)
	if err != nil {
		return page, err
	}
	defer rows.Close()
	for size := 0; size < bridge.MaxPage/8 && rows.Next(); {
		m := bridge.InboxMessage{CorrelationID: run}
		if err := rows.Scan(&m.Seq, &m.Text, &m.Author, (*int64)(&m.EnqueuedAt)); err != nil {
			return page, err
		}
		size += len(m.Text)
		page.Messages = append(page.Messages, m)
	}
	return page, rows.Err()
}

// number reads a parameter of a request that counts something.
func number(r *http.Request, name string) (int64, error) {
	given := r.URL.Query().Get(name)
	if given == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(given, 10, 64)
	if err != nil || n < 0 {
		return 0, &refusal{status: http.StatusBadRequest, message: name + " must be a number"}
	}
	return n, nil
}
