package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Recording is a run that Replay plays back.
type Recording struct {
	// Match says for which specs the recording is meant; nil means all.
	Match func(SpawnSpec) bool
	// Stdout and Stderr are what the program prints; stderr comes first.
	Stdout []byte
	Stderr []byte
	// Pace is the pause before each line of stdout; zero plays at full speed.
	Pace time.Duration
	// Hang makes the program wait for its end after it has printed everything.
	Hang bool
	// ExitCode and Signal are how it ends by itself.
	ExitCode int
	Signal   string
	// Err, if set, is what Spawn returns instead of a run.
	Err error
}

// ErrNoRecording is returned by Replay when no recording is left that matches.
var ErrNoRecording = errors.New("no recording for this program")

// Replay is a ProcessSpawner that starts nothing: it plays recordings back, each of
// them once and in order, with the timeouts, limits and cancellation of the real one.
// It is safe for concurrent use.
type Replay struct {
	// Recordings are what is to be played.
	Recordings []Recording
	// Now is the clock of the results; nil is the system's.
	Now func() time.Time

	mu    sync.Mutex
	used  []bool
	specs []SpawnSpec
}

// Specs returns what was asked of the spawner so far.
func (r *Replay) Specs() []SpawnSpec {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.specs)
}

// Spawn implements ProcessSpawner.
func (r *Replay) Spawn(ctx context.Context, spec SpawnSpec, stdout, stderr io.Writer) (SpawnResult, error) {
	result := SpawnResult{ExitCode: -1, Containment: ProcessGroup}
	recording, err := r.take(spec)
	if err != nil {
		return result, err
	}
	if spec, err = spec.withDefaults(); err != nil {
		return result, err
	}
	if err := ctx.Err(); err != nil {
		result.Cancelled = true
		return result, fmt.Errorf("run %s: %w", spec.Argv[0], err)
	}
	now := r.Now
	if now == nil {
		now = time.Now
	}
	p := &player{
		spec:      spec,
		recording: recording,
		result:    result,
		meter:     newMeter(spec.MaxOutput, 0),
	}
	p.result.StartMs = now().UnixMilli()
	p.play(ctx, writerOrDiscard(stdout), writerOrDiscard(stderr))
	p.result.EndMs = now().UnixMilli()
	if p.meter.err != nil {
		return p.result, fmt.Errorf("run %s: deliver its output: %w", spec.Argv[0], p.meter.err)
	}
	return p.result, nil
}

// take finds the recording for a spec and marks it as played.
func (r *Replay) take(spec SpawnSpec) (Recording, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.specs = append(r.specs, spec)
	if r.used == nil {
		r.used = make([]bool, len(r.Recordings))
	}
	for i, recording := range r.Recordings {
		if r.used[i] || recording.Match != nil && !recording.Match(spec) {
			continue
		}
		r.used[i] = true
		return recording, recording.Err
	}
	return Recording{}, fmt.Errorf("%w: %q", ErrNoRecording, spec.Argv)
}

// player is one run of a recording.
type player struct {
	spec      SpawnSpec
	recording Recording
	result    SpawnResult
	meter     *meter
}

func (p *player) play(ctx context.Context, stdout, stderr io.Writer) {
	var timeout <-chan time.Time
	if p.spec.Timeout > 0 {
		timer := time.NewTimer(p.spec.Timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	if p.spec.OnStart != nil {
		p.spec.OnStart(0)
	}
	p.result.StderrBytes = p.meter.deliver(stderr, p.recording.Stderr)
	if p.overflowed() {
		return
	}
	for line := range bytes.Lines(p.recording.Stdout) {
		if !p.pause(ctx, timeout, p.recording.Pace) {
			return
		}
		p.result.StdoutBytes += p.meter.deliver(stdout, line)
		if p.overflowed() {
			return
		}
	}
	if p.recording.Hang && !p.pause(ctx, timeout, -1) {
		return
	}
	p.result.ExitCode, p.result.Signal = p.recording.ExitCode, p.recording.Signal
}

// overflowed ends the run when nobody takes its output any more.
func (p *player) overflowed() bool {
	if !p.meter.over() {
		return false
	}
	p.result.OutputLimit, p.result.Signal = p.meter.err == nil, "SIGKILL"
	return true
}

// pause waits, for ever if the duration is negative, and reports whether the program
// still runs afterwards.
func (p *player) pause(ctx context.Context, timeout <-chan time.Time, d time.Duration) bool {
	var over <-chan time.Time
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
		p.result.Cancelled = true
	case <-timeout:
		p.result.TimedOut = true
	case <-over:
		// When both are due, the end of the run wins.
		if ctx.Err() == nil {
			return true
		}
		p.result.Cancelled = true
	}
	p.result.Signal = "SIGTERM"
	return false
}
