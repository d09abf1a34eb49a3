package conventions

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

// maxProgram is the size of the program, in bytes, that people accept to download.
const maxProgram = 46_000_000

// TestTheProgramIsSmall: a jump of several megabytes is mostly code that calls methods by names
// that are known at run time only, such as Execute of package text/template: with it the linker
// keeps every exported method. go build -ldflags=-dumpdep shows it as <ReflectMethod>.
func TestTheProgramIsSmall(t *testing.T) {
	t.Parallel()
	testenv.NeedTool(t, "go")
	program := filepath.Join(t.TempDir(), "fit")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", program, "./cmd/fit")
	build.Dir = repository(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() >= maxProgram {
		t.Errorf("the program has %d bytes; the limit is %d", info.Size(), maxProgram)
	}
}
