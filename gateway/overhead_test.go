package gateway_test

import (
	"net/http"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/fit-eval/fit/gateway"
)

// TestWhatAGatewayAddsToARun: starting one, a seat, a call and the end of it all take at most 15 ms
// and 10 MB. A quarter of the tries must do, because the machine has other things to do.
func TestWhatAGatewayAddsToARun(t *testing.T) {
	var took []time.Duration
	var before, after runtime.MemStats
	upstream := func(w http.ResponseWriter, _ *http.Request) { stream(w, messageStart, messageEnd) }
	for range 21 {
		runtime.GC()
		runtime.ReadMemStats(&before)
		began := time.Now()
		h := open(t, gateway.Config{}, upstream)
		h.ask("/v1/messages", messageRequest)
		h.last()
		runtime.ReadMemStats(&after)
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
		if grown := int64(after.Sys - before.Sys); grown > 10<<20 {
			t.Errorf("%d bytes more memory", grown)
		}
	}
	slices.Sort(took)
	quarter := took[len(took)/4]
	t.Logf("a quarter within %s, half within %s", quarter, took[len(took)/2])
	if quarter > 15*time.Millisecond {
		t.Error("at most 15 ms")
	}
}
