package fit_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/fit-eval/fit"
	"github.com/fit-eval/fit/internal/sandbox"
)

// Whoever interrupts a session while its isolation is tried has not found out that there is none. A
// trace that says so would be resumed without a sandbox.
func TestAnInterruptedStartDecidesNothingAboutIsolation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, isolation := range []string{"auto", sandbox.IsolationBwrap} {
		for _, network := range []string{"", sandbox.NetworkModel} {
			var alone, member bytes.Buffer
			wiring := fit.Wiring{
				Isolation: isolation,
				Network:   network,
				Environ:   []string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir()},
			}
			_, err := wiring.Run(ctx, fit.RunConfig{
				Task:     "Do it.",
				Cwd:      t.TempDir(),
				Agent:    "builtin",
				ModelURL: "http://127.0.0.1:9",
				Output:   &alone,
			})
			if !errors.Is(err, context.Canceled) || alone.Len() > 0 {
				t.Errorf("alone, %s, network %q: %v, and a trace %q", isolation, network, err, alone.String())
			}
			team, err := wiring.NewSupervisor(fit.SupervisorConfig{
				AgentCwd: t.TempDir(),
				Output:   &member,
				Options:  options("http://127.0.0.1:9"),
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = team.Run(ctx, "Do it.")
			if !errors.Is(err, context.Canceled) || member.Len() > 0 {
				t.Errorf("team, %s, network %q: %v, and a trace %q", isolation, network, err, member.String())
			}
		}
	}
}
