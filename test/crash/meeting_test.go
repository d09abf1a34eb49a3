package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/builtin"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/harness/mcpserve"
	"github.com/fit-eval/fit/trace"
)

// The environment that makes the test binary hold the meeting and kill itself.
const (
	envDir      = "CRASH_TEST_DIR"
	envModelURL = "CRASH_TEST_MODEL_URL"
	envKillAt   = "CRASH_TEST_KILL_AT"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(envDir); dir != "" {
		killAt, err := strconv.ParseInt(os.Getenv(envKillAt), 10, 64)
		if err == nil {
			err = holdMeeting(dir, os.Getenv(envModelURL), killAt)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	debug.SetGCPercent(1000) // hundreds of sessions are held here, and time counts more than memory
	os.Exit(m.Run())
}

func tracePath(dir string) string { return filepath.Join(dir, "trace.ndjson") }

// holdMeeting runs the meeting, and kills its own process when line killAt has been written.
func holdMeeting(dir, modelURL string, killAt int64) error {
	writer, err := trace.Open(tracePath(dir), trace.Config{OnLine: func(line trace.Envelope) {
		if line.Seq == killAt {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // not a step further
		}
	}})
	if err != nil {
		return err
	}
	var participants []harness.AgentConfig
	for _, name := range meetingNames {
		participants = append(participants, harness.AgentConfig{Name: name, Amend: "You are " + name + "."})
	}
	options := sessionOptions(modelURL)
	options.Trace, options.HomeDir = writer, filepath.Join(dir, "homes")
	options.BatchWindow = 100 * time.Millisecond
	f, err := harness.NewFacilitator(harness.FacilitatorConfig{
		FacilitatorCwd: dir, AgentConfigs: participants,
		NewAgent: queryBuiltin, Options: options,
	})
	if err != nil {
		return err
	}
	result, err := f.Run(context.Background(), "Hold the meeting.")
	if err == nil && (!result.Success || result.Summary != meetingSummary) {
		err = fmt.Errorf("the meeting ended with %+v", result)
	}
	return errors.Join(err, writer.Close())
}

// sessionOptions are what a session and its resumption are both given: the agents talk to the tools
// over MCP and to the model over HTTP.
func sessionOptions(modelURL string) harness.Options {
	return harness.Options{
		Base:    agent.Config{ModelURL: modelURL, Environ: []string{"PATH=" + os.Getenv("PATH")}},
		Connect: mcpserve.NewKeyring(1 + len(meetingNames)).Connect(mcpserve.Config{}),
	}
}

func queryBuiltin(harness.AgentConfig) (agent.Agent, error) { return builtin.New(), nil }
