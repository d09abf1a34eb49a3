package model_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/fit-eval/fit/internal/model"
)

// A redirect would show the key and the conversation to another server.
func TestAKeyFollowsNoRedirect(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server was asked, with %v", r.Header)
	}))
	defer elsewhere.Close()
	endpoint := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer endpoint.Close()
	for _, protocol := range []model.Protocol{model.Anthropic, model.Responses} {
		client, err := model.New(model.Config{
			Protocol:   protocol,
			BaseURL:    endpoint.URL,
			APIKey:     "real-key",
			MaxRetries: -1,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Complete(t.Context(), question()); err == nil {
			t.Errorf("%s: the call succeeded", protocol)
		}
	}
}
