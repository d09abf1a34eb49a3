package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/scratch"
)

// The path of a socket may have 107 bytes. That of the directory for temporary files may have more.
func TestTheLineToAContainerLiesAnywhere(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	if err := os.Mkdir(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := scratch.Make(parent, "fit-container-")
	if err != nil {
		t.Fatal(err)
	}
	r := &room{dir: dir}
	listener, err := r.listen()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir.Path, "line", lineName))
	if err != nil || info.Mode() != os.ModeSocket|0o666 {
		t.Errorf("%v: %v", info, err)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	if err := dir.Remove(); err != nil {
		t.Error(err)
	}
}
