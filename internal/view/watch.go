package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/experiment/control"
)

// watchedRun is what the pages know of a run directory that they follow.
type watchedRun struct {
	at       location
	stamp    string
	cells    map[cellName]cell
	running  string // the cells that run; empty where no process works
	wasAlive bool
	gone     bool // the run directory was removed
	status   []byte
	statusAt time.Time
	reportAt time.Time
	report   bool // numbers changed that the pages do not know
}

// watchedTrace is what the pages know of a trace that they follow.
type watchedTrace struct {
	size int64 // negative once the trace is gone
	at   time.Time
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

// runStatus is the status of a run directory in a stream that follows several.
type runStatus struct {
	Experiment string `json:"experiment"`
	*liveStatus
}

// experiment sends what changed in a run directory that is followed. The pages hear that it is
// watched and read it once more: what changed before is in what they read then.
func (st *stream) experiment(ctx context.Context, id string) error {
	run := st.runs[id]
	if run == nil {
		at, err := st.server.directory(id)
		if err != nil {
			return nil //nolint:nilerr // the page hears it from the answers to its other questions
		}
		run = &watchedRun{at: at}
		st.runs[id] = run
		if err := st.changed(run, st.server.pollStatus(ctx, at), stampOf(at.path)); err != nil {
			return err
		}
		if err := st.send("watching", map[string]string{"experiment": id}); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(run.at.path); errors.Is(err, fs.ErrNotExist) && run.at.path != "" && !run.gone {
		run.gone, run.report = true, true // the page asks for it once more, and hears that it is gone
	}
	now := st.server.pollStatus(ctx, run.at)
	alive := now != nil
	if stamp := stampOf(run.at.path); stamp != run.stamp || namesOf(now) != run.running {
		if err := st.changed(run, now, stamp); err != nil {
			return err
		}
	}
	if run.report && time.Since(run.reportAt) >= reportEvery {
		run.report, run.reportAt = false, time.Now()
		if err := st.send("report", map[string]string{"experiment": id}); err != nil {
			return err
		}
	}
	ended := run.wasAlive && !alive
	run.wasAlive = alive
	switch {
	case ended:
		return st.send("status", map[string]any{
			"experiment": id, "state": stateEnded, "running": []any{}, "controllable": false,
		})
	case !alive:
		return nil
	}
	return st.status(ctx, run)
}

// status sends the status of an experiment that runs.
func (st *stream) status(ctx context.Context, run *watchedRun) error {
	now := st.server.status(ctx, run.at)
	if now == nil {
		return nil
	}
	content, err := json.Marshal(runStatus{Experiment: run.at.id, liveStatus: now})
	if err != nil || bytes.Equal(content, run.status) && time.Since(run.statusAt) < statusEvery {
		return err
	}
	run.status, run.statusAt = content, time.Now()
	return st.sendRaw("status", content)
}

// changed sends the cells that have changed. The first time the page has just read them.
func (st *stream) changed(run *watchedRun, now *control.Status, stamp string) error {
	first := run.stamp == ""
	run.stamp, run.running = stamp, namesOf(now)
	known := run.cells
	run.cells = map[cellName]cell{}
	changed := []cell{}
	for _, c := range st.server.snapshot(run.at).live(now) {
		run.cells[*c.name()] = c
		if before, ok := known[*c.name()]; !ok || !sameCell(before, c) {
			changed = append(changed, c)
		}
	}
	if first || len(changed) == 0 {
		return nil
	}
	run.report = true
	return st.send("cells", map[string]any{"experiment": run.at.id, "cells": changed})
}

// namesOf lists the cells that run.
func namesOf(now *control.Status) string {
	if now == nil {
		return ""
	}
	names := []string{"alive"}
	for _, one := range now.Running {
		names = append(names, fmt.Sprintf("%q %q %d", one.Task, one.Arm, one.Run))
	}
	slices.Sort(names)
	return strings.Join(names, "\n")
}

// sameCell reports whether two states of a cell look alike.
func sameCell(a, b cell) bool {
	return a.State == b.State && a.Attempt == b.Attempt && a.Why == b.Why && a.DurationMs == b.DurationMs
}

// growth sends the number of entries of a trace that has grown, and once when it is first followed.
func (st *stream) growth(ctx context.Context, id string) error {
	known := st.traces[id]
	if known == nil {
		known = &watchedTrace{}
		st.traces[id] = known
	}
	t, file, err := st.server.openNamed(ctx, id)
	if err != nil { // it was packed when its attempt ended
		if known.size < 0 {
			return nil
		}
		known.size = -1
		return st.send("trace", map[string]any{"trace": id, "live": false, "gone": true})
	}
	info, err := os.Stat(t.Path)
	if err != nil || info.Size() == known.size {
		return nil //nolint:nilerr // a file that is gone has not grown
	}
	if info.Size() >= indexFrom && time.Since(known.at) < largeEvery {
		return nil
	}
	known.size, known.at = info.Size(), time.Now()
	live := st.server.isLive(file)
	if info.Size() >= indexFrom {
		entries, err := t.Count(ctx)
		if err != nil {
			return ctx.Err()
		}
		return st.send("trace", map[string]any{"trace": id, "entries": entries, "live": live})
	}
	overview, _, err := t.Overview(ctx)
	if err != nil {
		return ctx.Err()
	}
	live = live && !hasEnded(overview)
	return st.send("trace", map[string]any{"trace": id, "entries": overview.TurnCount, "live": live})
}
