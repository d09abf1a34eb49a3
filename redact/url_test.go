package redact

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestURLsLoseWhatGivesAccess(t *testing.T) {
	r := New(Config{})
	for text, want := range map[string]string{
		"https://bob:hunter2@example.com/x":            "https://[REDACTED:pattern:url-user]@example.com/x",
		"http://proxy:pa%40ss@10.0.0.1:3128":           "http://[REDACTED:pattern:url-user]@10.0.0.1:3128",
		"https://0123456789abcdefABCD@example.com/r":   "https://[REDACTED:pattern:url-user]@example.com/r",
		"https://x.io/v1?key=abcdef12345&alt=json":     "https://x.io/v1?key=[REDACTED:pattern:url-parameter]&alt=json",
		"https://x.io/cb?a=1&token=t0ken-value end":    "https://x.io/cb?a=1&token=[REDACTED:pattern:url-parameter] end",
		"https://x.io/cb?a=1&amp;access_token=abcdefg": "https://x.io/cb?a=1&amp;access_token=[REDACTED:pattern:url-parameter]",
		"ssh://git@example.com/r.git":                  "ssh://git@example.com/r.git",
		"https://example.com/a@b?keyboard=abcdefgh":    "https://example.com/a@b?keyboard=abcdefgh",
		"https://example.com/?key=a":                   "https://example.com/?key=a",
		"mail bob@example.com, see https://e.com":      "mail bob@example.com, see https://e.com",
	} {
		t.Run(text, func(t *testing.T) {
			if got := r.String(text); got != want {
				t.Errorf("%s became %s", text, got)
			}
			line, err := json.Marshal(map[string]string{"url": text}) // with & as \u0026
			if err != nil {
				t.Fatal(err)
			}
			var back map[string]string
			if err := json.Unmarshal(r.JSON(line), &back); err != nil || back["url"] != want {
				t.Errorf("%s became %s (%v)", line, back["url"], err)
			}
			if strings.Contains(text, ";") {
				return // a stream is cut there
			}
			for cut := range len(text) {
				var out strings.Builder
				w := r.Writer(&out)
				_, _ = w.Write([]byte(text[:cut]))
				_, _ = w.Write([]byte(text[cut:]))
				if err := w.Close(); err != nil || out.String() != want {
					t.Errorf("cut at %d: %s (%v)", cut, out.String(), err)
				}
			}
		})
	}
}
