package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/session/sessiontest"
)

// leastRatio is to the speed at which the standard library checks that the same lines are JSON.
const leastRatio = 0.8

// TestSpeedOfTheDialect reads all recordings over and over, as one long stream, in flat memory.
// What counts is CPU time, which holds on a busy machine.
func TestSpeedOfTheDialect(t *testing.T) {
	testenv.Measurement(t, "bench-acp")
	var all bytes.Buffer
	for _, file := range sessiontest.Recordings(t, recordings) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	stream := bytes.Repeat(all.Bytes(), 256)
	best, yardstick := 0.0, 0.0
	for range 5 {
		began := cpuSeconds(t)
		for line := range bytes.Lines(stream) {
			_ = json.Valid(line)
		}
		yardstick = max(yardstick, float64(len(stream))/1e6/(cpuSeconds(t)-began))
		began = cpuSeconds(t)
		enricher := &session.Enricher{Dialects: dialects(), Options: session.Options{Flat: true}}
		if err := enricher.Read(bytes.NewReader(stream)); err != nil && err != io.EOF {
			t.Fatal(err)
		}
		if sessions := enricher.Sessions(); len(sessions) != 1 || sessions[0].Turns == 0 {
			t.Fatal("nothing was read")
		}
		best = max(best, float64(len(stream))/1e6/(cpuSeconds(t)-began))
	}
	t.Logf("%d MB of recordings at %.0f MB a second of CPU time, %.2f times as fast as json.Valid", len(stream)/1e6,
		best, best/yardstick)
	if best < leastRatio*yardstick {
		t.Errorf("the dialect is read at %.2f times the speed of json.Valid; the least is %.2f", best/yardstick, leastRatio)
	}
}

func cpuSeconds(t *testing.T) float64 {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return float64(usage.Utime.Sec+usage.Stime.Sec) + float64(usage.Utime.Usec+usage.Stime.Usec)/1e6
}

// TestSpeedOfTheStart compares the time from the start of an agent to its first answer with that of
// the same program at the other end of a bare pipe.
func TestSpeedOfTheStart(t *testing.T) {
	testenv.Measurement(t, "bench-acp")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), player) // no symbolic link: in a sandbox a program has its own name
	if err := os.Link(self, program); err != nil {
		t.Fatal(err)
	}
	var bare, reaped, boxed []time.Duration
	for range 21 {
		bare = append(bare, askDirectly(t, program))
		reaped = append(reaped, askAsAgent(t, program, sandbox.Isolation{}))
		boxed = append(boxed, askAsAgent(t, program, sandbox.Isolation{Kind: sandbox.IsolationBwrap}))
	}
	direct := median(bare)
	for name, times := range map[string][]time.Duration{"as it is": reaped, "in bubblewrap": boxed} {
		t.Run(name, func(t *testing.T) {
			added := median(times) - direct
			t.Logf("%s: %v beside %v, %v more", name, median(times), direct, added)
			if added > 6*direct {
				t.Errorf("%s the start takes %v longer; the limit is 6 times %v", name, added, direct)
			}
		})
	}
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2].Round(100 * time.Microsecond)
}

func askDirectly(t *testing.T, program string) time.Duration {
	t.Helper()
	began := time.Now()
	cmd := exec.CommandContext(t.Context(), program, "")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(out)
	for id, method := range []string{"initialize", "session/new", "session/prompt"} {
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"cwd":"/","sessionId":"S"}}`+"\n", id, method)
		for answers.Scan() && !strings.Contains(answers.Text(), fmt.Sprintf(`"id":%d,`, id)) {
		}
	}
	took := time.Since(began)
	_ = in.Close() // it ends then
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return took
}

func askAsAgent(t *testing.T, program string, isolation sandbox.Isolation) time.Duration {
	t.Helper()
	p := perform(t, "")
	p.entry.Command = program
	p.config.Isolation = isolation
	if isolation.Isolates() {
		p.config.Isolation.Writable = []string{p.config.Dir}
	}
	began := time.Now()
	talk, err := New(p.entry).Start(t.Context(), p.config)
	if err != nil {
		t.Fatal(err)
	}
	defer talk.Close()
	if result, err := talk.Prompt(t.Context(), "Do it"); err != nil || !result.Success {
		t.Fatalf("%+v, %v", result, err)
	}
	return time.Since(began)
}
