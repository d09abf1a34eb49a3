package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fit-eval/fit/sandbox"
)

func TestReplayPlaysRecordingsInOrderAndByMatch(t *testing.T) {
	replay := &sandbox.Replay{Recordings: []sandbox.Recording{
		{Match: func(s sandbox.SpawnSpec) bool { return s.Argv[0] == "codex" }, Stdout: []byte("c\n"), ExitCode: 2},
		{Stdout: []byte("one\n"), Stderr: []byte("warning\n")},
		{Stdout: []byte("two\nno newline"), Signal: "SIGSEGV", ExitCode: -1},
	}}
	for _, want := range []struct {
		argv0, out, errs, signal string
		exit                     int
	}{
		{argv0: "claude", out: "one\n", errs: "warning\n"},
		{argv0: "codex", out: "c\n", exit: 2},
		{argv0: "claude", out: "two\nno newline", signal: "SIGSEGV", exit: -1},
	} {
		var out, errs bytes.Buffer
		result, err := replay.Spawn(t.Context(), sandbox.SpawnSpec{Argv: []string{want.argv0}}, &out, &errs)
		if err != nil || out.String() != want.out || errs.String() != want.errs || result.ExitCode != want.exit ||
			result.Signal != want.signal {
			t.Errorf("%s: got %q, %q, %+v, %v", want.argv0, out.String(), errs.String(), result, err)
		}
	}
	_, err := replay.Spawn(t.Context(), sandbox.SpawnSpec{Argv: []string{"claude"}}, nil, nil)
	if !errors.Is(err, sandbox.ErrNoRecording) {
		t.Errorf("a fourth run gave %v", err)
	}
	if specs := replay.Specs(); len(specs) != 4 || specs[1].Argv[0] != "codex" {
		t.Errorf("remembered %v", specs)
	}
}

func TestReplayKeepsPaceTimeoutsAndCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := []byte(strings.Repeat("line\n", 10))
		replay := &sandbox.Replay{Recordings: []sandbox.Recording{
			{Stdout: lines, Pace: time.Second},
			{Stdout: lines, Pace: time.Second},
			{Stdout: lines, Hang: true},
		}}
		spec := sandbox.SpawnSpec{Argv: []string{"agent"}}
		result, err := replay.Spawn(t.Context(), spec, nil, nil)
		if err != nil || result.EndMs-result.StartMs != 10_000 || result.StdoutBytes != 50 {
			t.Errorf("at its pace: %+v, %v", result, err)
		}
		spec.Timeout = 3500 * time.Millisecond
		result, err = replay.Spawn(t.Context(), spec, nil, nil)
		if err != nil || !result.TimedOut || result.StdoutBytes != 15 || result.Signal != "SIGTERM" {
			t.Errorf("with a timeout: %+v, %v", result, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		spec.Timeout = 0
		result, err = replay.Spawn(ctx, spec, nil, nil)
		if err != nil || !result.Cancelled || result.StdoutBytes != 50 || result.ExitCode != -1 {
			t.Errorf("hanging: %+v, %v", result, err)
		}
	})
}

func TestReplayHonoursTheOutputLimit(t *testing.T) {
	replay := &sandbox.Replay{Recordings: []sandbox.Recording{{Stdout: []byte("12345\n67890\n"), Stderr: []byte("ab")}}}
	var out bytes.Buffer
	result, err := replay.Spawn(t.Context(), sandbox.SpawnSpec{Argv: []string{"agent"}, MaxOutput: 10}, &out, nil)
	if err != nil || !result.OutputLimit || out.String() != "12345\n67" {
		t.Errorf("got %q, %+v, %v", out.String(), result, err)
	}
}

func TestReplayReportsAFailingWriterAndAPlannedError(t *testing.T) {
	planned := errors.New("planned")
	replay := &sandbox.Replay{Recordings: []sandbox.Recording{{Stdout: []byte("12345\n")}, {Err: planned}}}
	_, err := replay.Spawn(t.Context(), sandbox.SpawnSpec{Argv: []string{"agent"}}, &failingWriter{}, nil)
	if err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("got %v", err)
	}
	if _, err := replay.Spawn(t.Context(), sandbox.SpawnSpec{Argv: []string{"agent"}}, nil, nil); !errors.Is(err,
		planned) {
		t.Errorf("got %v", err)
	}
}
