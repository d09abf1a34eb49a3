package codex

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/sandbox"
)

// A project's settings can name any file of the machine as instructions. Without isolation it would
// be sent to the model.
func TestInstructionsFromAnywhereAreRefusedWithoutIsolation(t *testing.T) {
	cfg := agent.Config{Dir: t.TempDir()}
	file := filepath.Join(cfg.Dir, filepath.FromSlash(configName))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("model_instructions_file = \"/etc/shadow\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readProject(cfg); !errors.As(err, new(*agent.CapabilityError)) {
		t.Errorf("without isolation: %v", err)
	}
	cfg.Isolation.Kind = sandbox.IsolationBwrap
	if _, err := readProject(cfg); err != nil {
		t.Errorf("in a sandbox: %v", err)
	}
}
