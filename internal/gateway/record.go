package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/redact"
)

// RecordConfig says which calls of a session are recorded, and what answers them.
type RecordConfig struct {
	// Path is the record of calls; empty keeps none.
	Path string
	Policy
	Redactor *redact.Redactor
}

// Record keeps the calls of a session, and answers them where it is a replay. It is safe for use
// from many goroutines.
type Record struct {
	cfg    RecordConfig
	replay *Recording

	mu       sync.Mutex
	writer   *calls.Writer // nil until the first member: many sessions have none
	answered Replayed
}

// Replayed counts the calls that a record answered.
type Replayed struct {
	Calls int
	// Differed counts the calls whose requests differ from the recorded ones in what a model would
	// read. How shows the first of them.
	Differed int
	How      string
	// OriginalUSD is what the calls cost when they were recorded; nil is unknown.
	OriginalUSD *float64
}

// OpenRecord opens what answers the calls. The record that is written begins with its first member.
func OpenRecord(cfg RecordConfig) (*Record, error) {
	r := &Record{cfg: cfg, answered: Replayed{OriginalUSD: new(float64)}}
	if cfg.Replay == "" {
		return r, nil
	}
	path, err := FindRecord(cfg.Replay)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if sameFile(path, cfg.Path) {
		return nil, fmt.Errorf("replay: %s cannot be written while it is replayed; write the trace to another "+
			"file", path)
	}
	r.replay, err = OpenReplay(path, ReplayConfig{Mode: cfg.ReplayMode, Redactor: cfg.Redactor})
	return r, err
}

// sameFile reports whether two names stand for one file.
func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// NoEndpoint is the endpoint of an agent whose calls a record answers: with it the agent needs no
// key, and no model can be called by mistake.
const NoEndpoint = "http://replay.invalid"

// Enter makes a member part of the record. Its directories differ from run to run.
func (r *Record) Enter(m *Member, dirs map[string]string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.writer == nil && r.cfg.Path != "" && r.cfg.Record != calls.RecordOff {
		writer, err := calls.Create(r.cfg.Path, calls.Config{
			Redactor: r.cfg.Redactor,
			MetaOnly: r.cfg.Record == calls.RecordMeta,
		})
		if err != nil {
			return err
		}
		r.writer = writer
	}
	if r.writer != nil {
		m.Calls = r.writer
		if err := r.writer.Place(calls.Place{Participant: m.Name, Dirs: dirs}); err != nil {
			return err
		}
	}
	if r.replay != nil {
		m.Replay = r.replay.For(m.Name, dirs)
	}
	before := m.OnCall
	m.OnCall = func(call calls.Call) {
		r.took(call)
		if before != nil {
			before(call)
		}
	}
	return nil
}

func (r *Record) took(call calls.Call) {
	if call.Outcome != calls.Replayed {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered.Calls++
	if call.Differs != "" {
		r.answered.Differed++
		r.answered.How = cmp.Or(r.answered.How, call.Differs)
	}
	if total := r.answered.OriginalUSD; total == nil || call.OriginalUSD == nil {
		r.answered.OriginalUSD = nil
	} else {
		r.answered.OriginalUSD = new(*total + *call.OriginalUSD)
	}
}

// Missed returns the first request that a strict replay had no answer to; nil if there was none.
func (r *Record) Missed() error {
	if r == nil || r.replay == nil {
		return nil
	}
	r.replay.mu.Lock()
	defer r.replay.mu.Unlock()
	return r.replay.missed
}

// Replayed counts the calls that were answered; nil if this is not a replay.
func (r *Record) Replayed() *Replayed {
	if r.replay == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return new(r.answered)
}

// Close closes the files.
func (r *Record) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var failed []error
	if r.writer != nil {
		failed = append(failed, r.writer.Close())
		r.writer = nil
	}
	if r.replay != nil {
		failed = append(failed, r.replay.Close())
	}
	return errors.Join(failed...)
}

// FindRecord finds the record that a path means: the record itself, the trace beside it, or the
// directory of a run that holds one.
func FindRecord(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case !info.IsDir() && strings.HasSuffix(path, calls.Extension):
		return path, nil
	case !info.IsDir():
		record := calls.Path(path)
		if _, err := os.Stat(record); err != nil {
			return "", fmt.Errorf("%s has no record of its model calls beside it (%s)", path, filepath.Base(record))
		}
		return record, nil
	}
	found := glob.Below(path, "*"+calls.Extension)
	if agent := filepath.Join(path, "agent"+calls.Extension); slices.Contains(found, agent) {
		return agent, nil
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%s holds %d records of model calls (*%s); name one", path, len(found), calls.Extension)
	}
	return found[0], nil
}
