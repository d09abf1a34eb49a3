package gateway_test

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/fit-eval/fit/gateway"
)

// TestTheSameRequestAgainIsATurnUnlessItFailed: an agent that tries again what failed loses no turn
// by it, and one that asks the same thing again and again gains none.
func TestTheSameRequestAgainIsATurnUnlessItFailed(t *testing.T) {
	var asked atomic.Int64
	h := open(t, gateway.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if n := asked.Add(1); n == 2 || n == 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, "{}")
	})
	reached := h.seat.Begin(3)
	for i, want := range []struct{ status, retry int }{
		{200, 0}, {503, 0}, {503, 1}, {200, 2}, {200, 0}, {400, 0}, {400, 1},
	} {
		resp, _ := h.ask("/v1/messages", messageRequest)
		if c := h.last(); resp.StatusCode != want.status || c.Retry != want.retry {
			t.Errorf("call %d: status %d, retry %d, want %+v", i+1, resp.StatusCode, c.Retry, want)
		}
	}
	<-reached
	if err := h.seat.Limit(); !errors.Is(err, gateway.ErrTurnLimit) || asked.Load() != 5 {
		t.Errorf("%v after %d calls", err, asked.Load())
	}
}
