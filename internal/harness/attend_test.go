package harness_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/harness/harnesstest"
)

// TestNobodyWaitsForOneWhoIsSlow has participants who end their turns only when all of them are in
// one: if members shared goroutines with those who are slow, the session would never end.
func TestNobodyWaitsForOneWhoIsSlow(t *testing.T) {
	const participants = 200
	synctest.Test(t, func(t *testing.T) {
		var together sync.WaitGroup
		together.Add(participants)
		began := time.Now()
		var met time.Duration
		players := cast{"facilitator": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
			switch {
			case turn.Number == 1:
				return say(ctx, turn, "Ask", map[string]any{"question": "are you there?"})
			case strings.Contains(turn.Prompt, "[answer#"):
				_, err := turn.Call(ctx, "Conclude", map[string]any{"verdict": "success", "summary": "all met"})
				return "", err // it is refused while somebody has not answered
			default:
				return "", nil
			}
		}}
		var names []string
		for i := range participants {
			name := fmt.Sprintf("p%d", i)
			names = append(names, name)
			players[name] = func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
				together.Done()
				together.Wait()
				if i == 0 {
					met = time.Since(began)
				}
				return say(ctx, turn, "Answer", map[string]any{"message": "yes"})
			}
		}
		result, err := facilitate(t, players, &buffer{}, harness.Options{HomeDir: t.TempDir()},
			names...).Run(t.Context(), "meet")
		if err != nil || !result.Success {
			t.Errorf("%+v, %v", result, err)
		}
		if met > 50*time.Millisecond {
			t.Errorf("the last of them got its turn after %v", met)
		}
	})
}

// TestTheLeadReadsWhatOneSaysWhileAnotherWorks has one who answers at once and one who works until
// the lead has read that: the lead waits a moment for more to read, not until everybody has ended.
func TestTheLeadReadsWhatOneSaysWhileAnotherWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := make(chan struct{})
		wanting := leadWanting(2)
		players := cast{
			"facilitator": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
				if turn.Number == 2 {
					close(heard)
				}
				return wanting(ctx, turn)
			},
			"alice": answerAll("done"),
			"bob": func(ctx context.Context, turn *harnesstest.Turn) (string, error) {
				select {
				case <-heard:
					return answerAll("done as well")(ctx, turn)
				case <-ctx.Done():
					return "", ctx.Err()
				}
			},
		}
		result, err := facilitate(t, players, &buffer{}, harness.Options{}, "alice", "bob").Run(t.Context(), "go")
		if err != nil || !result.Success {
			t.Fatalf("%+v, %v", result, err)
		}
		if gone := participant(t, result, "bob").Gone; gone != "" {
			t.Errorf("bob is gone because it %s", gone)
		}
	})
}
