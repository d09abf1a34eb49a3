package doctorcli

import (
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
)

// A model's address takes the place of credentials only where it can be one.
func TestAModelURLThatIsNoneIsNamed(t *testing.T) {
	for url, wrong := range map[string]bool{"localhost:8080": true, "http://127.0.0.1:8080": false, "": false} {
		t.Run(url, func(t *testing.T) {
			con := &console.Console{Environ: []string{"FIT_MODEL_URL=" + url}}
			findings, _ := examine(t.Context(), con, &agent.Registry{})
			named := findings[0].Name == "FIT_MODEL_URL" && findings[0].Status == statusMissing
			if named != wrong {
				t.Errorf("%q: %+v", url, findings[0])
			}
		})
	}
}
