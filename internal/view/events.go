package view

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// The rhythm of a stream of events.
const (
	tick        = 500 * time.Millisecond
	pingEvery   = 15 * time.Second
	statusEvery = 2 * time.Second
	listEvery   = 2 * time.Second
	reportEvery = time.Second
	// largeEvery is how often the entries of a large trace that grows are counted.
	largeEvery = 5 * time.Second
	writeLimit = 10 * time.Second
)

const (
	// maxStreams is how many streams are open concurrently. The pages of a browser share one.
	maxStreams = 64
	// maxTopics is how many run directories and traces one stream follows.
	maxTopics = 200
)

// topics are what the pages that share a stream want to hear about.
type topics struct {
	List        bool     `json:"list"`        // the entries of the list of experiments
	Experiments []string `json:"experiments"` // ids of run directories
	Traces      []string `json:"traces"`
	Threads     []string `json:"threads"` // ids of threads; allThreads is their list
}

// streams are the open streams of events, by their ids.
type streams struct {
	mu   sync.Mutex
	open map[string]*stream
}

// stream tells the pages of one browser what changes.
type stream struct {
	server  *Server
	w       http.ResponseWriter
	control *http.ResponseController
	wroteAt time.Time

	mu     sync.Mutex
	wanted topics
	news   map[string]bool // threads that have changed since the last look
	kick   chan struct{}   // has room for one: something may be worth a look

	entries  map[string][]byte
	listAt   time.Time
	runs     map[string]*watchedRun
	traces   map[string]*watchedTrace
	followed map[string]bool // threads of which the pages have heard
}

// events streams what changes until the browser goes away. The stream's first event is its id, with
// which pages change what they follow.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	wanted := topics{List: true, Experiments: nonEmpty(query["experiment"]), Traces: nonEmpty(query["trace"])}
	if query.Has("list") {
		wanted.List = query.Get("list") != "0"
	}
	if err := s.checkTopics(wanted); err != nil {
		writeError(w, err)
		return
	}
	st := &stream{
		server:   s,
		w:        w,
		control:  http.NewResponseController(w),
		wanted:   wanted,
		entries:  map[string][]byte{},
		runs:     map[string]*watchedRun{},
		traces:   map[string]*watchedTrace{},
		news:     map[string]bool{},
		kick:     make(chan struct{}, 1),
		followed: map[string]bool{},
	}
	if s.threads != nil {
		defer s.threads.bridge.Watch(st.threadsChanged)()
	}
	id, err := s.streams.add(st)
	if err != nil {
		writeError(w, err)
		return
	}
	defer s.streams.remove(id)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	_ = st.control.SetReadDeadline(time.Time{})
	if st.send("stream", map[string]string{"id": id}) == nil {
		st.run(r.Context(), s.ctx.Done())
	}
}

func nonEmpty(list []string) []string {
	return slices.DeleteFunc(list, func(one string) bool { return one == "" })
}

// checkTopics returns the problem with the first topic that does not exist.
func (s *Server) checkTopics(t topics) error {
	for _, id := range t.Experiments {
		if _, err := s.directory(id); err != nil {
			return err
		}
	}
	for _, id := range t.Traces {
		if _, err := s.tracePath(id); err != nil {
			return err
		}
	}
	return nil
}

func (l *streams) add(st *stream) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= maxStreams {
		return "", &problem{
			status:  http.StatusServiceUnavailable,
			message: fmt.Sprintf("%d browsers are live already", maxStreams),
			hint:    "close some of them",
		}
	}
	if l.open == nil {
		l.open = map[string]*stream{}
	}
	id := secret()
	l.open[id] = st
	return id, nil
}

func (l *streams) remove(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, id)
}

// follow replaces what a stream follows. What does not exist is left out: the page that asked for
// it hears that from the answers to its other questions.
func (s *Server) follow(r *http.Request) (any, error) {
	var wanted topics
	if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil {
		return nil, badRequest("want a list of experiments and traces: " + err.Error())
	}
	if len(wanted.Experiments)+len(wanted.Traces)+len(wanted.Threads) > maxTopics {
		return nil, conflict(fmt.Sprintf("pages follow more than %d runs, traces and threads", maxTopics),
			"close some of them")
	}
	s.streams.mu.Lock()
	st := s.streams.open[r.PathValue("stream")]
	s.streams.mu.Unlock()
	if st == nil {
		return nil, notFound("this stream has ended", "GET /api/events opens another one")
	}
	st.mu.Lock()
	st.wanted = wanted
	st.mu.Unlock()
	st.wake()
	return map[string]int{"version": version}, nil
}

func (st *stream) run(ctx context.Context, ended <-chan struct{}) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		if err := st.look(ctx); err != nil {
			return
		}
	wait:
		select {
		case <-ticker.C:
		case <-st.kick: // threads change too often to look at everything else each time
			if err := st.lookAtThreads(); err != nil {
				return
			}
			goto wait
		case <-ctx.Done():
			return
		case <-ended:
			return
		}
	}
}

// look sends what has changed since the last call.
func (st *stream) look(ctx context.Context) error {
	if time.Since(st.wroteAt) >= pingEvery {
		if err := st.write([]byte(": ping\n\n")); err != nil {
			return err
		}
	}
	st.mu.Lock()
	wanted := st.wanted
	st.mu.Unlock()
	if wanted.List {
		if err := st.list(); err != nil {
			return err
		}
	}
	for id := range st.runs {
		if !slices.Contains(wanted.Experiments, id) {
			delete(st.runs, id)
		}
	}
	for id := range st.traces {
		if !slices.Contains(wanted.Traces, id) {
			delete(st.traces, id)
		}
	}
	for _, id := range wanted.Experiments {
		if err := st.experiment(ctx, id); err != nil {
			return err
		}
	}
	for _, id := range wanted.Traces {
		if err := st.growth(ctx, id); err != nil {
			return err
		}
	}
	return st.lookAtThreads()
}

func (st *stream) send(event string, value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return st.sendRaw(event, content)
}

// sendRaw sends one event. JSON has no line breaks.
func (st *stream) sendRaw(event string, content []byte) error {
	return st.write(fmt.Appendf(nil, "event: %s\ndata: %s\n\n", event, content))
}

func (st *stream) write(content []byte) error {
	st.wroteAt = time.Now()
	_ = st.control.SetWriteDeadline(time.Now().Add(writeLimit))
	if _, err := st.w.Write(content); err != nil {
		return err
	}
	return st.control.Flush()
}
