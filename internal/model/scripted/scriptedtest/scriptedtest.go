// Package scriptedtest serves scripts to tests.
//
//	url := scriptedtest.Serve(t, `{"turns": [{"text": "Done."}]}`)
package scriptedtest

import (
	"testing"

	"github.com/fit-eval/fit/internal/model/scripted"
)

// Serve serves one script until the test ends and returns its address.
func Serve(t testing.TB, script string) string {
	t.Helper()
	return ServeAll(t, map[string]string{"": script}, scripted.Options{})
}

// ServeAll serves scripts under their names until the test ends.
func ServeAll(t testing.TB, scripts map[string]string, opts scripted.Options) string {
	t.Helper()
	parsed := map[string]*scripted.Script{}
	for name, text := range scripts {
		script, err := scripted.Parse([]byte(text))
		if err != nil {
			t.Fatalf("script %q: %v", name, err)
		}
		parsed[name] = script
	}
	server, err := scripted.Listen("127.0.0.1:0", scripted.NewServer(parsed, opts))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server.URL
}
