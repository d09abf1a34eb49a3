package claudecode

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
)

// Settings of an arm that would be without effect are refused: arms that differ in nothing else
// would be the same.
func TestSettingsWithoutEffectAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		settings string
		programs bool
		refused  bool
	}{
		"not JSON":              {settings: "model: x", refused: true},
		"a model":               {settings: `{"model": "opus"}`, programs: true, refused: true},
		"hooks without sandbox": {settings: `{"hooks": {"Stop": []}}`, refused: true},
		"hooks in a sandbox":    {settings: `{"hooks": {"Stop": []}}`, programs: true},
		"others":                {settings: `{"outputStyle": "terse"}`},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "settings.json")
			if err := os.WriteFile(file, []byte(test.settings), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := userSettings(file, test.programs)
			if refused := errors.As(err, new(*agent.CapabilityError)); refused != test.refused {
				t.Errorf("refused %v: %v", refused, err)
			}
		})
	}
}
