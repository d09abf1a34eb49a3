package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/sandbox"
)

// hostile are programs that try to outlive the run. @ stands for a marker.
var hostile = map[string]string{
	"plain background child": `sleep @ & echo up; sleep @`,
	"own session":            `setsid sleep @ & echo up; sleep @`,
	"double fork, own session, cleared environment": `env -i "$(command -v setsid)" /bin/sh -c '
		(sleep @ & sleep @ & echo up) ; exit 0' & wait; sleep @`,
	"ignores SIGTERM": `trap "" TERM; echo up; while :; do sleep @; done`,
	"daemon that ignores all it can": `setsid sh -c 'trap "" TERM INT HUP QUIT; echo up; while :; do sleep @; done' &
		wait`,
	"respawners":                         `for i in 1 2 3 4 5 6; do setsid sh -c 'while :; do sleep @; done' & done; echo up; wait`,
	"comet that forks and exits forever": `comet() { (comet &) ; }; comet; echo up; sleep @`,
	"family tree": `grow() { if [ $1 -gt 0 ]; then (grow $(($1-1))) & setsid sh -c 'sleep @' & fi; sleep @; }
		grow 6 & sleep 0.05; echo up; wait`,
	"stopped child": `sh -c 'kill -STOP $$; sleep @' & echo up; sleep @`,
}

func TestCancelledTreeIsGone(t *testing.T) {
	for name, script := range hostile {
		t.Run(name, func(t *testing.T) {
			eachContainment(t, func(t *testing.T, l sandbox.Local) {
				marker := newMarker(t)
				spec := shell(strings.ReplaceAll(script, "@", marker))
				spec.Grace = 100 * time.Millisecond
				result, took := spawnUntilUp(t, l, spec)
				mustBeGone(t, marker)
				if took > patience {
					t.Errorf("the end took %v", took)
				}
				if len(result.Unkillable) > 0 {
					t.Errorf("unkillable reported: %v", result.Unkillable)
				}
			})
		})
	}
}

func TestLeftoversOfAProgramThatEndsByItselfAreKilled(t *testing.T) {
	eachContainment(t, func(t *testing.T, l sandbox.Local) {
		marker := newMarker(t)
		// Both hold the output pipes open.
		script := strings.ReplaceAll(`setsid sleep @ & (sleep @ &); exit 7`, "@", marker)
		start := time.Now()
		result, err := l.Spawn(t.Context(), shell(script), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		mustBeGone(t, marker)
		if result.ExitCode != 7 || result.LeftoversKilled != 2 || result.Cancelled {
			t.Errorf("got %+v, want exit code 7 and 2 leftovers", result)
		}
		if took := time.Since(start); took > patience {
			t.Errorf("a child that holds the pipe kept us for %v", took)
		}
	})
}

func TestHangingProgramTimesOut(t *testing.T) {
	eachContainment(t, func(t *testing.T, l sandbox.Local) {
		marker := newMarker(t)
		spec := shell("exec sleep " + marker)
		spec.Timeout = 50 * time.Millisecond
		result, err := l.Spawn(t.Context(), spec, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		mustBeGone(t, marker)
		if !result.TimedOut || result.Cancelled || result.Signal != "SIGTERM" || result.ExitCode != -1 {
			t.Errorf("got %+v, want a timeout ended by SIGTERM", result)
		}
		if took := result.EndMs - result.StartMs; took < 50 || took > patience.Milliseconds() {
			t.Errorf("it took %d ms", took)
		}
	})
}

func TestProgramMayCleanUpAfterSIGTERM(t *testing.T) {
	eachContainment(t, func(t *testing.T, l sandbox.Local) {
		spec := shell(`trap 'echo cleaned; exit 5' TERM; echo up; while :; do sleep 0.01; done`)
		ctx, cancel := context.WithCancel(t.Context())
		out := &trigger{text: "up\n", fire: cancel}
		result, err := l.Spawn(ctx, spec, out, nil)
		if err != nil {
			t.Fatal(err)
		}
		if result.ExitCode != 5 || !result.Cancelled || out.String() != "up\ncleaned\n" {
			t.Errorf("got %+v and %q", result, out.String())
		}
	})
}

func TestFloodIsKilledAtTheOutputLimit(t *testing.T) {
	eachContainment(t, func(t *testing.T, l sandbox.Local) {
		marker := newMarker(t)
		const limit = 10<<20 + 17
		spec := shell(`trap "" TERM; sleep ` + marker + ` & head -c 1073741824 /dev/zero`)
		spec.MaxOutput = limit
		var out bytes.Buffer
		result, err := l.Spawn(t.Context(), spec, &out, nil)
		if err != nil {
			t.Fatal(err)
		}
		mustBeGone(t, marker)
		if !result.OutputLimit || result.TimedOut || result.Cancelled {
			t.Errorf("got %+v, want the output limit", result)
		}
		if out.Len() != limit || result.StdoutBytes != limit {
			t.Errorf("delivered %d bytes, counted %d, want all %d up to the limit", out.Len(), result.StdoutBytes,
				limit)
		}
	})
}

func TestFloodOfAProgramThatEndsAtOnceIsAnOutputLimitToo(t *testing.T) {
	spec := shell(`echo 0123456789; echo 0123456789 >&2`)
	spec.MaxOutput = 15
	var out, errs bytes.Buffer
	result, err := sandbox.Local{}.Spawn(t.Context(), spec, &out, &errs)
	if err != nil {
		t.Fatal(err)
	}
	if !result.OutputLimit || out.Len()+errs.Len() != 15 {
		t.Errorf("delivered %d bytes of 15, result %+v", out.Len()+errs.Len(), result)
	}
}

func TestTreeDiesWithTheHarness(t *testing.T) {
	eachContainment(t, func(t *testing.T, l sandbox.Local) {
		marker := newMarker(t)
		script := strings.ReplaceAll(`trap "" TERM; env -i "$(command -v setsid)" sleep @ & echo up; sleep @`, "@",
			marker)
		harness := exec.Command(os.Args[0], string(l.Containment), script)
		harness.Env = append(os.Environ(), roleVariable+"=harness", quickExit)
		up := make(chan struct{})
		harness.Stdout = &trigger{text: "up\n", fire: func() { close(up) }}
		harness.Stderr = harness.Stdout
		if err := harness.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- harness.Wait() }()
		select {
		case <-up:
		case err := <-ended:
			t.Fatalf("the harness ended early: %v, %s", err, harness.Stdout)
		}
		if len(alive(marker)) < 2 {
			t.Error("the tree is not there although it said so")
		}
		if err := harness.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-ended
		eventually(t, "everything is gone", func() bool { return len(alive(marker)) == 0 })
	})
}

func TestProgramCannotEndItsSupervisor(t *testing.T) {
	marker := newMarker(t)
	script := strings.ReplaceAll(`for s in TERM INT HUP QUIT USR1 SEGV KILL STOP; do kill -$s 1; done
		setsid sleep @ & echo still here; exit 3`, "@", marker)
	var out bytes.Buffer
	result, err := sandbox.Local{Containment: sandbox.PIDNamespace}.Spawn(t.Context(), shell(script), &out, nil)
	if err != nil {
		t.Fatal(err)
	}
	mustBeGone(t, marker)
	if result.ExitCode != 3 || out.String() != "still here\n" {
		t.Errorf("got %+v and %q", result, out.String())
	}
}

func TestKilledSubReaperIsNoticedAndItsSessionSwept(t *testing.T) {
	marker := newMarker(t)
	spec := shell(strings.ReplaceAll(`setsid sleep @ & kill -9 $PPID; sleep @`, "@", marker))
	spec.Env = append(spec.Env, sandbox.RunMarker+"="+marker)
	result, err := sandbox.Local{Containment: sandbox.SubReaper}.Spawn(t.Context(), spec, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	mustBeGone(t, marker)
	if result.Signal != "SIGKILL" || result.ExitCode != -1 || result.LeftoversKilled == 0 {
		t.Errorf("got %+v, want the signal that ended the supervisor and leftovers", result)
	}
}

func TestConcurrentRunsDoNotTouchEachOther(t *testing.T) {
	eachContainment(t, func(t *testing.T, l sandbox.Local) {
		long := newMarker(t)
		release, hold := io.Pipe()
		var wait sync.WaitGroup
		up := make(chan struct{})
		wait.Go(func() {
			spec := shell(strings.ReplaceAll(`env -i "$(command -v setsid)" sleep @ & echo up; read line; exit 4`, "@",
				long))
			spec.Stdin = release
			result, err := l.Spawn(t.Context(), spec, &trigger{text: "up\n", fire: func() { close(up) }}, nil)
			if err != nil || result.ExitCode != 4 || result.LeftoversKilled != 1 {
				t.Errorf("the long run got %+v, %v", result, err)
			}
		})
		<-up
		var short sync.WaitGroup
		for i := range 8 {
			short.Go(func() {
				marker := newMarker(t)
				script := fmt.Sprintf(`env -i "$(command -v setsid)" sh -c "sleep %s & sleep %s &"; exit %d`, marker,
					marker, i)
				result, err := l.Spawn(t.Context(), shell(script), nil, nil)
				if err != nil || result.ExitCode != i || result.LeftoversKilled != 2 {
					t.Errorf("run %d got %+v, %v", i, result, err)
				}
				mustBeGone(t, marker)
			})
		}
		short.Wait()
		if len(alive(long)) != 2 {
			t.Errorf("of the long run %d processes are alive, want its shell and its daemon", len(alive(long)))
		}
		fmt.Fprintln(hold, "go on")
		wait.Wait()
		mustBeGone(t, long)
	})
}

func TestProcessGroupAloneFindsMarkedOrphans(t *testing.T) {
	marker := newMarker(t)
	spec := shell(strings.ReplaceAll(`setsid sh -c '(sleep @ &)'; sleep @ & exit 2`, "@", marker))
	spec.Env = append(spec.Env, sandbox.RunMarker+"="+marker)
	result, err := sandbox.Local{Containment: sandbox.ProcessGroup}.Spawn(t.Context(), spec, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	mustBeGone(t, marker)
	if result.ExitCode != 2 || result.LeftoversKilled != 2 || result.Containment != sandbox.ProcessGroup {
		t.Errorf("got %+v", result)
	}
}
