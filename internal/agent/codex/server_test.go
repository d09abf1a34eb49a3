package codex

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/session"
)

// player is the name under which the test binary plays an app server, badly in the way that the
// model's name says.
const player = "play-server"

// request is a line that the server reads.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params map[string]any  `json:"params"`
	Result map[string]any  `json:"result"`
}

// playServer is the stub's main function.
func playServer() {
	lines := bufio.NewScanner(os.Stdin)
	how := ""
	say := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	start := func() { say(`{"method":"turn/started","params":{"threadId":"T","turn":{"id":"P"}}}`) }
	end := func(status string) {
		say(`{"method":"turn/completed","params":{"threadId":"T","turn":{"id":"P","status":%q}}}`, status)
	}
	for lines.Scan() {
		var r request
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			os.Exit(1)
		}
		switch r.Method {
		case "initialize":
			say(`{"id":%s,"result":{"codexHome":"/h"}}`, r.ID)
		case "thread/start":
			how, _ = r.Params["model"].(string)
			say(`{"id":%s,"result":{"thread":{"id":"T"},"model":%q}}`, r.ID, how)
		case "turn/start":
			switch how {
			case "refuses":
				say(`{"id":%s,"error":{"code":-32600,"message":"not today"}}`, r.ID)
			case "asks":
				start()
				say(`{"id":"q","method":"item/commandExecution/requestApproval","params":{"threadId":"T"}}`)
				say(`{"id":7,"method":"item/tool/requestUserInput","params":{"threadId":"T"}}`)
			case "dies":
				os.Exit(7)
			case "late": // the prompt begins only after the client has lost patience
				say(`{"method":"thread/status/changed","params":{"threadId":"T"}}`)
			default:
				start()
			}
		case "turn/interrupt":
			if how != "deaf" {
				end("interrupted")
			}
		case "":
			if r.Result["decision"] == "accept" {
				say(`{"method":"item/completed","params":{"threadId":"T","item":{"type":"agentMessage","id":"m","text":"allowed"}}}`)
			} else {
				end("completed")
			}
		}
		if how == "late" && r.Method == "turn/start" {
			time.AfterFunc(200*time.Millisecond, start)
		}
	}
}

// perform prompts a server that behaves in some way; begun, if set, is called at the first
// notification of the prompt.
func perform(t *testing.T, ctx context.Context, how string, begun func()) (agent.Result, error) {
	t.Helper()
	program := filepath.Join(t.TempDir(), player)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	grace := time.Hour // a slow machine is no reason to kill
	if how == "deaf" {
		grace = 500 * time.Millisecond
	}
	talk, err := New().Start(ctx, agent.Config{
		Dir: t.TempDir(), Home: t.TempDir(), Model: how, ModelURL: "http://127.0.0.1:1", Spawner: sandbox.NewSpawner(),
		Grace:        grace,
		Installation: &agent.Installation{Path: program, Version: "0.166.0"},
		Events: func(event []byte) {
			if begun != nil && (strings.Contains(string(event), "turn/started") ||
				strings.Contains(string(event), "thread/status")) {
				begun()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := talk.Prompt(ctx, "Do it")
	if closing := talk.Close(); closing != nil {
		t.Errorf("close: %v", closing)
	}
	return result, err
}

func TestAServerThatRefusesThePrompt(t *testing.T) {
	result, err := perform(t, t.Context(), "refuses", nil)
	if err == nil {
		err = result.Err
	}
	if result.Success || err == nil || !strings.Contains(err.Error(), "not today") {
		t.Errorf("result %+v, error %v", result, err)
	}
}

func TestAServerThatDies(t *testing.T) {
	result, err := perform(t, t.Context(), "dies", nil)
	if err != nil || result.Success || result.Outcome != session.OutcomeNoResult || result.Output.ExitCode != 7 {
		t.Errorf("result %+v, error %v", result, err)
	}
}

func TestQuestionsOfTheServerAreAnswered(t *testing.T) {
	result, err := perform(t, t.Context(), "asks", nil)
	if err != nil || !result.Success || result.Text != "allowed" {
		t.Errorf("result %+v, error %v", result, err)
	}
}

func TestInterrupts(t *testing.T) {
	for how, mustBeKilled := range map[string]bool{"obeys": false, "late": false, "deaf": true} {
		t.Run(how, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			result, err := perform(t, ctx, how, cancel)
			if err != nil || result.Success || !result.Aborted || result.Outcome != session.OutcomeCancelled {
				t.Errorf("result %+v, error %v", result, err)
			}
			if killed := result.Output.Signal != "" || result.Output.ExitCode != 0; killed != mustBeKilled {
				t.Errorf("killed: %v; %+v", killed, result.Output)
			}
		})
	}
}
