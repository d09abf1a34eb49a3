package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
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

// stream is one page that is live.
type stream struct {
	server  *Server
	w       http.ResponseWriter
	control *http.ResponseController

	at        location // the run directory that is watched; its id is empty if none is
	trace     string
	stamp     string
	cells     map[cellName]cell
	wasAlive  bool
	gone      bool // the run directory was removed
	status    []byte
	statusAt  time.Time
	reportAt  time.Time
	report    bool // numbers changed that the page does not know
	entries   map[string][]byte
	listAt    time.Time
	traceSize int64
	traceAt   time.Time
	wroteAt   time.Time
}

// events streams what changes until the page goes away.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		writeError(w, &problem{
			status:  http.StatusServiceUnavailable,
			message: fmt.Sprintf("%d pages are live already", maxStreams),
			hint:    "close some of them",
		})
		return
	}
	st := &stream{
		server:  s,
		w:       w,
		control: http.NewResponseController(w),
		trace:   r.URL.Query().Get("trace"),
		entries: map[string][]byte{},
	}
	if id := r.URL.Query().Get("experiment"); id != "" {
		at, err := s.directory(id)
		if err != nil {
			writeError(w, err)
			return
		}
		st.at = at
	}
	if st.trace != "" {
		if _, err := s.tracePath(st.trace); err != nil {
			writeError(w, err)
			return
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	st.run(r.Context(), s.ctx.Done())
}

func (st *stream) run(ctx context.Context, ended <-chan struct{}) {
	_ = st.control.SetReadDeadline(time.Time{})
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		if err := st.look(ctx); err != nil {
			return
		}
		select {
		case <-ticker.C:
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
	if err := st.list(); err != nil {
		return err
	}
	if st.at.id != "" {
		if err := st.experiment(ctx); err != nil {
			return err
		}
	}
	if st.trace != "" {
		return st.growth(ctx)
	}
	return nil
}

// list sends the entries of run directories that changed. The first time only those that run are
// sent: the page has read the list.
func (st *stream) list() error {
	if time.Since(st.listAt) < listEvery {
		return nil
	}
	first := st.listAt.IsZero()
	st.listAt = time.Now()
	directories, _ := st.server.locations()
	for _, at := range directories {
		entry := st.server.entry(at)
		content, err := json.Marshal(entry)
		if err != nil {
			return err
		}
		known := st.entries[at.id]
		st.entries[at.id] = content
		if bytes.Equal(known, content) || first && entry.State != runRunning {
			continue
		}
		if err := st.sendRaw("experiment", content); err != nil {
			return err
		}
	}
	return nil
}

// experiment sends what changed in the watched run directory.
func (st *stream) experiment(ctx context.Context) error {
	if _, err := os.Lstat(st.at.path); errors.Is(err, fs.ErrNotExist) && st.at.path != "" && !st.gone {
		st.gone, st.report = true, true // the page asks for it once more, and hears that it is gone
	}
	alive := st.server.isRunning(st.at)
	if stamp := stampOf(st.at.path); stamp != st.stamp || alive != st.wasAlive {
		if err := st.changed(alive, stamp); err != nil {
			return err
		}
	}
	if st.report && time.Since(st.reportAt) >= reportEvery {
		st.report, st.reportAt = false, time.Now()
		if err := st.send("report", map[string]string{"experiment": st.at.id}); err != nil {
			return err
		}
	}
	if ended := st.wasAlive && !alive; ended {
		st.wasAlive = false
		return st.send("status", map[string]any{"state": stateEnded, "running": []any{}, "controllable": false})
	}
	st.wasAlive = alive
	if !alive {
		return nil
	}
	status := st.server.status(ctx, st.at)
	if status == nil {
		return nil
	}
	content, err := json.Marshal(status)
	if err != nil || bytes.Equal(content, st.status) && time.Since(st.statusAt) < statusEvery {
		return err
	}
	st.status, st.statusAt = content, time.Now()
	return st.sendRaw("status", content)
}

// changed sends the cells that have changed. The first time the page has just read them.
func (st *stream) changed(alive bool, stamp string) error {
	first := st.stamp == ""
	st.stamp = stamp
	known := st.cells
	st.cells = map[cellName]cell{}
	changed := []cell{}
	for _, c := range st.server.snapshot(st.at).live(alive) {
		st.cells[*c.name()] = c
		if before, ok := known[*c.name()]; !ok || !sameCell(before, c) {
			changed = append(changed, c)
		}
	}
	if first || len(changed) == 0 {
		return nil
	}
	st.report = true
	return st.send("cells", map[string]any{"cells": changed})
}

// sameCell reports whether two states of a cell look alike.
func sameCell(a, b cell) bool {
	return a.State == b.State && a.Attempt == b.Attempt && a.Why == b.Why && a.DurationMs == b.DurationMs
}

// growth sends the number of entries of a trace that has grown.
func (st *stream) growth(ctx context.Context) error {
	t, file, err := st.server.openNamed(ctx, st.trace)
	if err != nil { // it was packed when its attempt ended
		if st.traceSize < 0 {
			return nil
		}
		st.traceSize = -1
		return st.send("trace", map[string]any{"trace": st.trace, "live": false, "gone": true})
	}
	info, err := os.Stat(t.Path)
	if err != nil || info.Size() == st.traceSize {
		return nil //nolint:nilerr // a file that is gone has not grown
	}
	first := st.traceSize == 0
	if info.Size() >= indexFrom && time.Since(st.traceAt) < largeEvery {
		return nil
	}
	st.traceSize, st.traceAt = info.Size(), time.Now()
	if first {
		return nil
	}
	entries, _, err := t.Count(ctx)
	if err != nil {
		return ctx.Err()
	}
	return st.send("trace", map[string]any{
		"trace": st.trace, "entries": entries, "live": st.server.isLive(file),
	})
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
