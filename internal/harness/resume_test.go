package harness_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/harness/harnesstest"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/trace"
)

// The environment that makes the test binary hold the meeting and kill itself.
const (
	envMeetingDir  = "HARNESS_TEST_MEETING"
	envMeetingKill = "HARNESS_TEST_KILL_AT"
	envMeetingKind = "HARNESS_TEST_VENDOR"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(envForgetful); dir != "" {
		if err := holdForgetful(dir, os.Getenv(envMeetingKill)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if dir := os.Getenv(envMeetingDir); dir != "" {
		killAt, _ := strconv.Atoi(os.Getenv(envMeetingKill))
		if err := holdMeeting(dir, killAt, os.Getenv(envMeetingKind) != ""); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// holdMeeting runs the meeting of durable agents and kills its own process when line killAt is
// written.
func holdMeeting(dir string, killAt int, vendor bool) error {
	writer, err := trace.Open(filepath.Join(dir, "trace.ndjson"), trace.Config{OnLine: func(env trace.Envelope) {
		if env.Seq == int64(killAt) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // not a step further
		}
	}})
	if err != nil {
		return err
	}
	var configs []harness.AgentConfig
	for _, name := range meetingNames {
		configs = append(configs, harness.AgentConfig{Name: name})
	}
	f, err := harness.NewFacilitator(harness.FacilitatorConfig{
		FacilitatorCwd: dir, AgentConfigs: configs, NewAgent: meetingQuery(vendor),
		Options: harness.Options{Trace: writer, HomeDir: filepath.Join(dir, "homes"), BatchWindow: -1},
	})
	if err != nil {
		return err
	}
	result, err := f.Run(context.Background(), "Hold the meeting.")
	if err == nil && !result.Success {
		err = fmt.Errorf("the meeting ended with %+v", result)
	}
	return errors.Join(err, writer.Close())
}

// killMeeting holds a meeting in another process that is killed at a line, and leaves of its trace
// what stands up to that line, and a part of the next one.
func killMeeting(t *testing.T, killAt int, vendor bool) (path string, killed bool) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", envMeetingDir+"="+dir,
		envMeetingKill+"="+strconv.Itoa(killAt))
	if vendor {
		cmd.Env = append(cmd.Env, envMeetingKind+"=1")
	}
	output, err := cmd.CombinedOutput()
	if err == nil {
		return "", false
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("kill at %d: %v\n%s", killAt, err, output)
	}
	path = filepath.Join(dir, "trace.ndjson")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := bytes.SplitAfter(data, []byte("\n"))
	kept := bytes.Join(all[:killAt+1], nil)
	if killAt+1 < len(all) && killAt%2 == 1 {
		kept = append(kept, all[killAt+1][:len(all[killAt+1])/2]...)
	}
	if err := os.WriteFile(path, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, true
}

func TestKilledAtAnyLineTheSessionIsResumedToTheSameOutcome(t *testing.T) {
	for _, vendor := range []bool{false, true} {
		t.Run(fmt.Sprintf("vendor=%v", vendor), func(t *testing.T) {
			stride := testenv.Stride(5, 29)
			if vendor {
				stride = testenv.Stride(9, 29)
			}
			cuts := 0
			for killAt := 0; ; killAt += stride {
				path, killed := killMeeting(t, killAt, vendor)
				if !killed {
					break
				}
				cuts++
				checkResumed(t, path, killAt, vendor)
			}
			t.Logf("killed and resumed %d times", cuts)
			if cuts*stride < 150 {
				t.Errorf("the meeting has only %d lines", cuts*stride)
			}
		})
	}
}

func checkResumed(t *testing.T, path string, killAt int, vendor bool) {
	t.Helper()
	before, _ := os.ReadFile(path)
	result, err := harness.Resume(t.Context(), path, harness.ResumeConfig{NewAgent: meetingQuery(vendor)})
	if strings.Contains(string(before), `"type":"summary"`) {
		if err == nil || !strings.Contains(err.Error(), "has ended") {
			t.Fatalf("killed after the summary, resume says %v", err)
		}
		return
	}
	data, readErr := os.ReadFile(path)
	if readErr != nil {
		t.Fatal(readErr)
	}
	if err != nil || !result.Success || result.Summary != fmt.Sprintf("%d rounds", meetingRounds) {
		t.Fatalf("killed at %d: %+v, %v\n%s", killAt, result, err, data)
	}
	checkDeliveries(t, data, killAt, vendor)
}

// checkDeliveries reads a trace that may have a torn line in it, and checks that no message was
// delivered twice, or, with agents that cannot continue a turn, at most once more and marked so.
func checkDeliveries(t *testing.T, data []byte, killAt int, vendor bool) {
	t.Helper()
	type delivery struct {
		to string
		id float64
	}
	first, again := map[delivery]int{}, map[delivery]int{}
	var whole []string
	for l := range strings.SplitSeq(string(data), "\n") {
		if _, err := trace.ParseLine([]byte(l)); err == nil && strings.HasSuffix(l, "}}") {
			whole = append(whole, l)
		}
	}
	all := lines(t, strings.Join(whole, "\n"))
	if all[len(all)-1].kind() != "summary" {
		t.Errorf("killed at %d: the last line is %s", killAt, all[len(all)-1].kind())
	}
	messages := len(ofType(all, "message"))
	for _, e := range ofType(all, "delivery") {
		count := first
		if e["redelivery"] == true {
			count = again
		}
		for _, id := range e["ids"].([]any) {
			count[delivery{e["to"].(string), id.(float64)}]++
		}
	}
	for d, n := range first {
		if n > 1 {
			t.Errorf("killed at %d: message %v was delivered %d times to %s", killAt, d.id, n, d.to)
		}
	}
	for d, n := range again {
		if !vendor || n > 1 {
			t.Errorf("killed at %d: message %v was delivered again %d times to %s", killAt, d.id, n, d.to)
		}
	}
	if !vendor && messages < 50 {
		t.Errorf("killed at %d: only %d messages", killAt, messages)
	}
}

func TestResumeRefusesWhatItCannotResume(t *testing.T) {
	dir := t.TempDir()
	if err := holdMeeting(dir, -1, false); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "trace.ndjson")
	if _, err := harness.Resume(t.Context(), path, harness.ResumeConfig{NewAgent: meetingQuery(false)}); err == nil ||
		!strings.Contains(err.Error(), "has ended") {
		t.Errorf("a finished session: %v", err)
	}
	if _, err := harness.Resume(t.Context(), path+".missing",
		harness.ResumeConfig{NewAgent: meetingQuery(false)}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no trace: %v", err)
	}
	other := filepath.Join(dir, "other.ndjson")
	if err := os.WriteFile(other, []byte(`{"type":"assistant"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := harness.Resume(t.Context(), other, harness.ResumeConfig{NewAgent: meetingQuery(false)}); err == nil ||
		!strings.Contains(err.Error(), "no session") {
		t.Errorf("somebody else's trace: %v", err)
	}
	newer := filepath.Join(dir, "newer.ndjson")
	start := `{"source":"orchestrator","seq":0,"ts":1,"event":{"type":"session_start","format":99,"lead":"a",` +
		`"members":[{"name":"a"}]}}` + "\n"
	if err := os.WriteFile(newer, []byte(start), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := harness.Resume(t.Context(), newer, harness.ResumeConfig{NewAgent: meetingQuery(false)}); err == nil ||
		!strings.Contains(err.Error(), "format 99") {
		t.Errorf("a trace of a later fit: %v", err)
	}
	live, err := trace.Open(path, trace.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	if _, err := harness.Resume(t.Context(), path, harness.ResumeConfig{NewAgent: meetingQuery(false)}); !errors.Is(err,
		trace.ErrLocked) {
		t.Errorf("a live trace: %v", err)
	}
}

func TestAReplyThatACrashCutOffFromItsAnswerIsStillPosted(t *testing.T) {
	players := cast{
		"alice": answerAll("so far"),
		"lead": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
			switch {
			case strings.Contains(turn.Prompt, "[answer#1]"):
				return say(ctx, turn, "Adjourn", map[string]any{"verdict": "adjourned", "summary": "done"})
			case strings.Contains(turn.Prompt, "repeated here"): // it has asked
				return "", nil
			default:
				return say(ctx, turn, "Ask", map[string]any{"question": "state?"})
			}
		},
	}
	th := &thread{trace: &buffer{}, arrived: make(chan struct{})}
	if _, err := discuss(t, players, th,
		harness.DiscusserConfig{Options: harness.Options{HomeDir: t.TempDir()}}); err != nil {
		t.Fatal(err)
	}
	whole := th.trace.String()
	answer := strings.Index(whole, `"kind":"answer","from":"alice"`)
	path := filepath.Join(t.TempDir(), "trace.ndjson")
	if err := os.WriteFile(path, []byte(whole[:answer+strings.Index(whole[answer:], "\n")+1]), 0o600); err != nil {
		t.Fatal(err)
	}
	th.posted = nil
	result, err := harness.Resume(
		t.Context(),
		path,
		harness.ResumeConfig{NewAgent: players.query, Replies: th, Inbox: th},
	)
	if err != nil || !result.Success || len(result.Replies) != 1 || len(th.posted) != 1 ||
		th.posted[0].Body != "so far" {
		t.Errorf("%+v, %v; posted: %+v", result, err, th.posted)
	}
}

// FuzzRebuild: whatever a trace holds, its session is rebuilt, or an error says why it is not.
func FuzzRebuild(f *testing.F) {
	dir := f.TempDir()
	if err := holdMeeting(dir, -1, false); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "trace.ndjson"))
	if err != nil {
		f.Fatal(err)
	}
	all := bytes.SplitAfter(whole, []byte("\n"))
	start, rest := string(all[0]), string(bytes.Join(all[1:len(all)/2], nil))
	f.Add([]byte(start + rest))
	for _, damage := range [][2]string{
		{`"lead":"facilitator"`, `"lead":"nobody"`},
		{`"lead":"facilitator"`, `"lead":"facilitator","resumed":{"askIdCounter":-2}`},
		{`"lead":"facilitator"`, `"lead":"facilitator","resumed":{"askIdCounter":4611686018427387904}`},
		{`"name":"facilitator"`, `"name":"alice"`},
		{`"mode":"facilitate"`, `"mode":"nothing"`},
	} {
		damaged := strings.Replace(start, damage[0], damage[1], 1)
		if damaged == start {
			f.Fatalf("%s is not in %s", damage[0], start)
		}
		f.Add([]byte(damaged + rest))
	}
	f.Fuzz(func(t *testing.T, trace []byte) {
		path := filepath.Join(t.TempDir(), "trace.ndjson")
		if err := os.WriteFile(path, trace, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := harness.Rebuild(path, harness.ResumeConfig{NewAgent: meetingQuery(false)}); err != nil {
			t.Log(err)
		}
	})
}
