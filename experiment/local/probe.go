package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/experiment"
	"github.com/fit-eval/fit/harness"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// probeTimeout bounds the credential probe.
const probeTimeout = 2 * time.Minute

// ProbeError says that an arm's model cannot be used.
type ProbeError struct {
	Arm string
	Err error
}

func (p *ProbeError) Error() string {
	return fmt.Sprintf("arm %s: the model does not answer: %v", p.Arm, p.Err)
}
func (p *ProbeError) Unwrap() error { return p.Err }

// Probe asks the model of every different arm one small thing, so that wrong credentials, a wrong
// address or a wrong model's name cost one call and not a grid.
func (e *Executor) Probe(ctx context.Context) error {
	asked := map[[4]string]bool{}
	for _, arm := range e.prepared.Arms {
		key := [4]string{arm.Agent, arm.Model, arm.ModelURL, arm.Auth}
		if asked[key] {
			continue
		}
		asked[key] = true
		if err := e.probe(ctx, &arm); err != nil {
			return &ProbeError{Arm: arm.Name, Err: err}
		}
	}
	return nil
}

func (e *Executor) probe(ctx context.Context, arm *experiment.Arm) error {
	room, err := os.MkdirTemp(e.work, "probe-")
	if err != nil {
		return err
	}
	defer func() { _ = RemoveAll(room) }()
	for _, dir := range []string{"work", "home"} {
		if err := os.Mkdir(filepath.Join(room, dir), 0o700); err != nil {
			return err
		}
	}
	chosen, err := e.machine.Registry.Get(arm.Agent)
	if err != nil {
		return err
	}
	installation := e.machine.installation(arm.Agent)
	settings := agent.Config{
		Dir:          filepath.Join(room, "work"),
		Home:         filepath.Join(room, "home"),
		Environ:      e.machine.Host.Environ,
		Model:        arm.Model,
		ModelURL:     experiment.Cell{TaskID: "probe", Arm: arm.Name}.ModelURL(arm.ModelURL),
		Auth:         arm.Auth,
		Installation: &installation,
		Spawner:      e.spawner,
	}
	if chosen.Info().Capabilities.MaxTurns != agent.Unsupported {
		settings.MaxTurns = 1
	}
	result, err := harness.Run(ctx, harness.RunConfig{
		Agent:   chosen,
		Session: settings,
		Task:    "Reply with the single word ready. Use no tool.",
		Timeout: probeTimeout,
		Trace:   trace.NewWriter(discard{}, trace.Config{}),
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case result.Reason == session.OutcomeAuth || result.Reason == session.OutcomeProvider ||
		result.Reason == session.OutcomeTimeout:
		return errors.Join(result.Err, fmt.Errorf("the probe ended with %s", result.Reason))
	}
	return nil // whatever else it did, it reached its model
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
