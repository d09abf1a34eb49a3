package agenttest

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Trap returns the address of a server to which nobody may talk: a request fails the test.
func Trap(t testing.TB) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("somebody asked the wrong server: %s %s", r.Method, r.URL)
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
