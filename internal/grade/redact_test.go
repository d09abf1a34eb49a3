package grade

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/redact"
)

const hidden = "s3cr3t-0123456789abcdefghij"

// leaks returns the longest part of the secret, from either end, that a text has.
func leaks(text string) string {
	for n := len(hidden); n >= 8; n-- {
		for _, part := range []string{hidden[:n], hidden[len(hidden)-n:]} {
			if strings.Contains(text, part) {
				return part
			}
		}
	}
	return ""
}

// TestWhatIsCutIsRedactedFirst moves a secret over every bound of what is kept.
func TestWhatIsCutIsRedactedFirst(t *testing.T) {
	redactor := redact.New(redact.Config{Environ: []string{"ANTHROPIC_API_KEY=" + hidden}})
	for shift := 0; shift < 2*len(hidden); shift += testenv.Size(1, 5) {
		for _, bound := range []int{keptHead, keptTail + 100} {
			var kept excerpt
			clean := redactor.Writer(&kept)
			text := strings.Repeat("x ", bound)[:bound-len(hidden)-1+shift] + " " + hidden + " " +
				strings.Repeat("y ", keptTail+bound)[:keptTail+bound-shift]
			if _, err := clean.Write([]byte(text)); err != nil || clean.Close() != nil {
				t.Fatal(err)
			}
			if part := leaks(string(bytes.TrimSpace(kept.Bytes()))); part != "" {
				t.Fatalf("bound %d, shift %d: %q was kept", bound, shift, part)
			}
		}
		for _, bound := range []int{maxMessage, maxTestName, 2 * maxMessage} {
			text := strings.Repeat("x ", bound)[:max(0, bound-len(hidden)-1+shift)] + " " + hidden + " more"
			var report testReport
			report.add(text, testFailed, text)
			report.problem("%s", text)
			report.tidy(redactor)
			for _, shown := range []string{report.Tests[0].Name, report.Tests[0].Message, report.Problem} {
				if part := leaks(shown); part != "" {
					t.Fatalf("bound %d, shift %d: %q was kept", bound, shift, part)
				}
			}
		}
	}
}
