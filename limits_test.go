package fit_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/fit-eval/fit"
	"github.com/fit-eval/fit/internal/sandbox"
)

// TestAgentsHaveLimitsThatNobodySet lets a member of a session, and an agent that runs alone, tell
// the limits of its commands.
func TestAgentsHaveLimitsThatNobodySet(t *testing.T) {
	const tell = `{"calls":[{"bash":"echo files=$(ulimit -n) blocks=$(ulimit -f)"}]}`
	limits := sandbox.DefaultLimits(sandbox.IsolationNone)
	want := fmt.Sprintf("files=%d blocks=", limits.OpenFiles)
	environ := []string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir()}
	wiring := fit.Wiring{Isolation: sandbox.IsolationNone, Environ: environ}

	url, stop := serveScript(`{"turns":[` + tell + `,{"text":"Done."}]}`)
	defer stop()
	var alone bytes.Buffer
	_, err := wiring.Run(t.Context(), fit.RunConfig{
		Task:     "Tell your limits.",
		Cwd:      t.TempDir(),
		Agent:    "builtin",
		ModelURL: url,
		Output:   &alone,
	})
	if err != nil || !strings.Contains(alone.String(), want) || strings.Contains(alone.String(), "blocks=unlimited") {
		t.Errorf("alone: %v, without %q\n%s", err, want, alone.String())
	}

	url, stop = serveScript(`{"scenarios":[
	  {"name":"supervisor","when":{"system":"You lead one agent"},"turns":[
	    {"calls":[{"mcp":"orchestration/Ask","input":{"question":"Your limits?"}}]},
	    {"text":"Waiting."},
	    {"calls":[{"mcp":"orchestration/Conclude","input":{"verdict":"success","summary":"Told."}}]},
	    {"text":"Over."}]}],
	  "turns":[` + tell + `,{"calls":[{"mcp":"orchestration/Answer","input":{"message":"There."}}]},{"text":"Done."}]}`)
	defer stop()
	var member bytes.Buffer
	team, err := wiring.NewSupervisor(fit.SupervisorConfig{
		AgentCwd: t.TempDir(),
		Output:   &member,
		Options:  options(url),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = team.Run(t.Context(), "Ask for the limits.")
	if err != nil || !strings.Contains(member.String(), want) || strings.Contains(member.String(), "blocks=unlimited") {
		t.Errorf("member: %v, without %q\n%s", err, want, member.String())
	}
}
