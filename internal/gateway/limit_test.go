package gateway_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fit-eval/fit/internal/gateway"
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
		_, _ = io.WriteString(w, `{"content":[]}`)
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

// A call that the service failed is no turn, also where the agent changes it before it tries again:
// else trouble of the service would end as a limit that the agent has reached.
func TestACallThatTheServiceFailedIsNoTurn(t *testing.T) {
	var fails atomic.Bool
	h := open(t, gateway.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if fails.Load() {
			w.WriteHeader(529)
		}
		_, _ = io.WriteString(w, `{"content":[]}`)
	})
	h.seat.Begin(2)
	for i, want := range []int{200, 529, 529, 529, 200, 400} {
		fails.Store(want == 529)
		changed := strings.Replace(messageRequest, "{", fmt.Sprintf(`{"metadata":{"user_id":"%d"},`, i), 1)
		if resp, _ := h.ask("/v1/messages", changed); resp.StatusCode != want {
			t.Errorf("call %d: status %d, want %d", i+1, resp.StatusCode, want)
		}
		if troubled := h.seat.Troubled(); troubled != fails.Load() {
			t.Errorf("call %d: troubled is %v", i+1, troubled)
		}
	}
}

// TestTheGatewayKnowsWhoseFaultAReplyIs: an error that the service or a proxy made is trouble; one
// that is about the account, or a model that is gone, is known but may have been provoked.
func TestTheGatewayKnowsWhoseFaultAReplyIs(t *testing.T) {
	var status atomic.Int64
	var body atomic.Value
	h := open(t, gateway.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		text, _ := body.Load().(string)
		if !strings.HasPrefix(text, "<") {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(int(status.Load()))
		_, _ = io.WriteString(w, text)
	})
	for _, test := range []struct {
		status         int
		body           string
		troubled, lost bool
	}{
		{400, `{"error":{"type":"invalid_request_error","message":"max_tokens: must be positive"}}`, false, false},
		{400, `{"error":{"type":"invalid_request_error","message":"unknown model: m"}}`, false, false}, // it never was
		{200, `{"content":[]}`, false, false},
		{400, `{"error":{"type":"invalid_request_error","message":"unknown model: m"}}`, false, true},
		{400, `{"error":{"type":"invalid_request_error","message":"You have reached your API usage limits"}}`, false, true},
		{400, `{"error":{"type":"server_error","message":"An error occurred"}}`, true, false},
		{400, `<html>Bad Request</html>`, true, false},
		{413, `<html>Request Entity Too Large</html>`, true, false},
		{418, `{"error":{"message":"short and stout"}}`, true, false},
		{200, `{"content":[]}`, false, false},
		{200, `{}`, true, false},
		{200, `{"content":[`, true, false},
		{200, ``, true, false},
	} {
		t.Run(test.body, func(t *testing.T) {
			status.Store(int64(test.status))
			body.Store(test.body)
			h.ask("/v1/messages", messageRequest)
			if troubled, lost := h.seat.Troubled(), h.seat.Lost(); troubled != test.troubled || lost != test.lost {
				t.Errorf("%d %s: troubled %v, lost %v", test.status, test.body, troubled, lost)
			}
			if rejected := h.seat.Rejected(); rejected != strings.Contains(test.body, "max_tokens") {
				t.Errorf("%d %s: rejected %v", test.status, test.body, rejected)
			}
		})
	}
}
