package experimentcli

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/ledger"
)

// The progress shows how many calls at a time a provider allows, once it has complained.
func TestTheProgressShowsWhatProvidersAllow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rate := gateway.NewRateControl()
		var shown bytes.Buffer
		s := newShow(&console.Console{Stderr: &shown}, nil, rate)
		acquire := func() func(int, time.Duration) {
			release, err := rate.Acquire(t.Context(), "api.example.com", "key", "gpt-5")
			if err != nil {
				t.Error(err)
			}
			return release
		}
		line := func() string {
			shown.Reset()
			s.progress(experiment.Progress{Done: 1, Total: 2, Last: &ledger.Record{}})
			_, status, _ := bytes.Cut(bytes.TrimSpace(shown.Bytes()), []byte(" · 1/2"))
			return string(status)
		}
		first, second := acquire(), acquire()
		if got := line(); got != " · $0.00" {
			t.Errorf("before any complaint: %q", got)
		}
		first(429, 7*time.Second)
		if got, want := line(), " · $0.00 · api.example.com gpt-5: 1 of 1 call, paused for 7s"; got != want {
			t.Errorf("after a complaint: %q, want %q", got, want)
		}
		third := make(chan struct{})
		go func() { acquire()(200, 0); close(third) }()
		synctest.Wait()
		if got, want := line(), " · $0.00 · api.example.com gpt-5: 1 of 1 call, 1 waiting, paused for 7s"; got != want {
			t.Errorf("while a call waits: %q, want %q", got, want)
		}
		second(200, 0)
		<-third
	})
}
