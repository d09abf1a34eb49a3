package crash

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/trace"
	"golang.org/x/sync/errgroup"
)

// TestKilledAtAnyLineTheSessionEndsAsIfNothingHadHappened kills a session of real agents at every
// line of its trace: the agents talk to their tools over MCP and to one model over HTTP, and what
// they keep is in their own homes.
func TestKilledAtAnyLineTheSessionEndsAsIfNothingHadHappened(t *testing.T) {
	server, err := scripted.Listen("127.0.0.1:0",
		scripted.NewServer(map[string]*scripted.Script{"": meetingScript(t)}, scripted.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() }) // every agent has ended by then
	stride := testenv.Stride(5, 7)
	var killed atomic.Int64
	var group errgroup.Group
	group.SetLimit(2 * runtime.GOMAXPROCS(0))
	for survived, killAt := new(atomic.Bool), 0; !survived.Load(); killAt += stride {
		dir := t.TempDir()
		group.Go(func() error {
			if !killMeeting(t, dir, server.URL, killAt) {
				survived.Store(true)
				return nil
			}
			killed.Add(1)
			checkResumed(t, dir, server.URL, killAt)
			return nil
		})
	}
	_ = group.Wait() // what went wrong was told
	t.Logf("killed and resumed %d times", killed.Load())
	if int(killed.Load())*stride < 75*meetingRounds {
		t.Errorf("the meeting has only %d lines", int(killed.Load())*stride)
	}
}

// killMeeting holds a meeting in a process that is killed at a line, and leaves of its trace what
// stands up to that line, and every other time a part of the next one. What was written beyond that
// line went to the file in the same call, so that nothing had happened on account of it. It returns
// false for a meeting that ended before.
func killMeeting(t *testing.T, dir, modelURL string, killAt int) bool {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), envDir+"="+dir, envModelURL+"="+modelURL, envKillAt+"="+strconv.Itoa(killAt),
		"GOGC=off", "GORACE=atexit_sleep_ms=0")
	output, err := command.CombinedOutput()
	if err == nil {
		return false
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("kill at %d: %v\n%s", killAt, err, output)
		return false
	}
	data, err := os.ReadFile(tracePath(dir))
	if err != nil {
		t.Error(err)
		return false
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	kept := bytes.Join(lines[:killAt+1], nil)
	if next := lines[killAt+1]; killAt%2 == 1 {
		kept = append(kept, next[:len(next)/2]...)
	}
	if err := os.WriteFile(tracePath(dir), kept, 0o600); err != nil {
		t.Error(err)
		return false
	}
	return true
}

func checkResumed(t *testing.T, dir, modelURL string, killAt int) {
	t.Helper()
	before := readTrace(t, dir)
	result, err := harness.Resume(t.Context(), tracePath(dir),
		harness.ResumeConfig{NewAgent: queryBuiltin, Options: sessionOptions(modelURL)})
	if before.last() == trace.TypeSummary {
		if err == nil || !strings.Contains(err.Error(), "has ended") {
			t.Errorf("killed after the summary, resume says %v", err)
		}
		return
	}
	after := readTrace(t, dir)
	if err != nil || !result.Success || result.Verdict != harness.VerdictSuccess || result.Summary != meetingSummary {
		t.Errorf("killed at %d: %+v, %v", killAt, result, err)
	}
	for _, problem := range after.problems() {
		t.Errorf("killed at %d: %s", killAt, problem)
	}
	if t.Failed() {
		t.Logf("killed at %d, the trace is:\n%s", killAt, after.text)
	}
}

// history is what the trace of a meeting says.
type history struct {
	text  string
	lines []trace.Envelope
	seen  []historyEvent // of the orchestrator
}

type historyEvent struct {
	Type       string  `json:"type"`
	ID         int64   `json:"id"`
	Kind       string  `json:"kind"`
	From       string  `json:"from"`
	To         string  `json:"to"`
	AskID      int64   `json:"askId"`
	IDs        []int64 `json:"ids"`
	Redelivery bool    `json:"redelivery"`
	Text       string  `json:"text"`
}

func readTrace(t *testing.T, dir string) history {
	t.Helper()
	data, err := os.ReadFile(tracePath(dir))
	if err != nil {
		t.Error(err)
	}
	h := history{text: string(data)}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		envelope, err := trace.ParseLine(line)
		if err != nil || !bytes.HasSuffix(line, []byte("}}")) {
			continue // empty, or torn by the kill
		}
		h.lines = append(h.lines, envelope)
		if envelope.Source != trace.Orchestrator {
			continue
		}
		var e historyEvent
		if err := json.Unmarshal(envelope.Event, &e); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		h.seen = append(h.seen, e)
	}
	return h
}

func (h history) last() string {
	if len(h.seen) == 0 || h.lines[len(h.lines)-1].Source != trace.Orchestrator {
		return ""
	}
	return h.seen[len(h.seen)-1].Type
}
