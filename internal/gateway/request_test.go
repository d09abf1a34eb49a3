package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A member that has 256 MiB of requests in flight gets no more memory.
func TestTheRequestsOfAMemberAreBounded(t *testing.T) {
	for under, want := range map[int64]bool{0: true, maxInFlight - 100: true, maxInFlight - 99: false} {
		x := &exchange{
			seat: &Seat{},
			r:    httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(strings.Repeat("x", 100))),
		}
		x.seat.underWay.Store(under)
		refused := x.readBody(httptest.NewRecorder())
		switch {
		case want && (refused != nil || len(x.body) != 100 || x.size != 100):
			t.Errorf("with %d bytes in flight: %v, %d bytes", under, refused, len(x.body))
		case !want && (refused == nil || refused.status != http.StatusRequestEntityTooLarge):
			t.Errorf("with %d bytes in flight: %v", under, refused)
		}
	}
}
