package view

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/experiment/control"
	"github.com/fit-eval/fit/internal/query"
)

// stateEnded is the state of an experiment whose process has ended.
const stateEnded = "ended"

// liveStatus is the status of a running experiment.
type liveStatus struct {
	control.Status
	Controllable bool          `json:"controllable"`
	Running      []runningCell `json:"running"`
}

// runningCell is a cell that is running, with what its agent did last.
type runningCell struct {
	control.Cell
	LastAction   string `json:"lastAction"`
	LastActionMs int64  `json:"lastActionMs"`
	Entries      int    `json:"entries"`
	Stalled      bool   `json:"stalled"`
	Trace        string `json:"trace"`
}

const (
	// statusFor is how long an answer of a running experiment counts as current.
	statusFor = 400 * time.Millisecond
	// askLimit is how long a running experiment may take to answer.
	askLimit = 2 * time.Second
	// stalledAfter is how long a trace is unchanged before its cell counts as stalled.
	stalledAfter = 2 * time.Minute
	// maxTail is the size up to which a trace is read for the last action.
	maxTail = 16 << 20
)

// pulses are the answers of running experiments, kept for a moment: many pages ask at once.
type pulses struct {
	mu    sync.Mutex
	known map[string]polledStatus
}

type polledStatus struct {
	at     time.Time
	status *control.Status // nil: nobody runs it
}

// pollStatus asks the process that works in a run directory; nil if there is none.
func (s *Server) pollStatus(ctx context.Context, at location) *control.Status {
	s.pulses.mu.Lock()
	last, ok := s.pulses.known[at.id]
	s.pulses.mu.Unlock()
	if ok && time.Since(last.at) < statusFor {
		return last.status
	}
	if at.path == "" {
		return nil
	}
	var status *control.Status
	if _, err := os.Lstat(path.Join(at.path, control.SocketFile)); err == nil {
		limit, cancel := context.WithTimeout(ctx, askLimit)
		defer cancel()
		answer, err := control.Ask(limit, at.path, control.Command{Action: control.Ping})
		switch {
		case err == nil:
			status = &answer.Status
		case !errors.Is(err, control.ErrNotRunning): // it is there, and slow
			status = last.status
		}
	}
	s.pulses.mu.Lock()
	defer s.pulses.mu.Unlock()
	if s.pulses.known == nil {
		s.pulses.known = map[string]polledStatus{}
	}
	s.pulses.known[at.id] = polledStatus{at: time.Now(), status: status}
	return status
}

// isRunning reports whether a process works in a run directory.
func (s *Server) isRunning(at location) bool { return s.pollStatus(context.Background(), at) != nil }

// status returns the status of the experiment in a run directory; nil if it is not running.
func (s *Server) status(ctx context.Context, at location) *liveStatus {
	now := s.pollStatus(ctx, at)
	if now == nil {
		return nil
	}
	return s.addLiveActions(ctx, at, now)
}

// addLiveActions adds the last actions of the agents of running cells.
func (s *Server) addLiveActions(ctx context.Context, at location, now *control.Status) *liveStatus {
	status := &liveStatus{Status: *now, Controllable: true, Running: []runningCell{}}
	for _, one := range now.Running {
		running := runningCell{Cell: one}
		c := cell{Task: one.Task, Arm: one.Arm, Run: one.Run}
		id := at.id + "/" + path.Join(c.runDir(one.Attempt), "agent.ndjson")
		if t, file, err := s.openNamed(ctx, id); err == nil {
			running.Trace, running.LastActionMs = id, file.modifiedMs
			running.Stalled = time.Since(time.UnixMilli(file.modifiedMs)) > stalledAfter
			if file.bytes <= maxTail {
				running.LastAction, running.Entries = lastAction(ctx, t)
			}
		}
		status.Running = append(status.Running, running)
	}
	return status
}

// lastAction returns an agent's last action: a call, else a message.
func lastAction(ctx context.Context, t *query.Trace) (action string, entries int) {
	_ = t.Tail(ctx, 10, func(e *query.Entry) error {
		entries = e.Index + 1
		if e.Role != query.RoleAssistant {
			return nil
		}
		for i := range e.Content {
			switch b := &e.Content[i]; b.Type {
			case query.BlockToolUse:
				action = strings.TrimSpace(b.Name + " " + titleOf(b))
			case query.BlockText:
				action = oneLine(b.Text)
			case query.BlockThinking:
				action = "thinking"
			}
		}
		return nil
	})
	return action, entries
}

// steer passes a page's command on to the running experiment.
func (s *Server) steer(r *http.Request, at location) (any, error) {
	var command control.Command
	if err := json.NewDecoder(r.Body).Decode(&command); err != nil {
		return nil, badRequest("want a command such as {\"action\":\"pause\"}: " + err.Error())
	}
	answer, err := control.Ask(r.Context(), at.path, command)
	var refused *control.Refused
	switch {
	case errors.As(err, &refused):
		return nil, conflict(refused.Reason, "")
	case errors.Is(err, control.ErrNotRunning):
		return nil, conflict("no process runs "+at.shown, "fit-benchmark run starts or continues it")
	case err != nil:
		return nil, err
	}
	s.pulses.mu.Lock()
	delete(s.pulses.known, at.id)
	s.pulses.mu.Unlock()
	return map[string]any{
		"version": version,
		"status":  s.addLiveActions(r.Context(), at, &answer.Status),
		"message": answer.Message,
	}, nil
}
