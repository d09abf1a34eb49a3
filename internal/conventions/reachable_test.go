package conventions

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/fit-eval/fit/internal/testenv"
)

// unreached are functions that no program calls and that stay, by package and name. What
// public packages export needs no line. Whoever adds one says why.
var unreached = map[string]string{
	"internal/harness.NewDispatcher": "tests drive the tools of a session without agents",
	"runTeam":                        "part of the modes for Go programs",
}

// TestEveryFunctionCanBeReached: what neither the binary nor an example calls is deleted.
func TestEveryFunctionCanBeReached(t *testing.T) {
	t.Parallel()
	root := repository(t)
	program := filepath.Join(root, ".tools", "bin", "deadcode")
	if _, err := os.Stat(program); err != nil {
		testenv.Missing(t, "%s; make setup installs it", program)
	}
	// Half of the source code of the program is the driver of SQLite, which calls nothing of ours.
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(root, "internal", "query", "sql", "driver.go"):     "",
		filepath.Join(root, "internal", "bridge", "server", "driver.go"): "",
	}})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, overlay, string(text), 0o600)
	command := exec.CommandContext(t.Context(), program, "-json", "./cmd/fit", "./examples/agents/go",
		"./examples/library")
	command.Dir = root
	command.Env = append(os.Environ(), "GOFLAGS=-overlay="+overlay, "GOGC=off", "GOMEMLIMIT=3GiB")
	output, err := command.Output()
	if err != nil {
		t.Fatalf("deadcode: %v", err)
	}
	var packages []struct {
		Path  string
		Funcs []struct {
			Name     string
			Position struct {
				File string
				Line int
			}
		}
	}
	if err := json.Unmarshal(output, &packages); err != nil {
		t.Fatal(err)
	}
	needed := map[string]bool{}
	for _, found := range packages {
		pkg := strings.TrimPrefix(strings.TrimPrefix(found.Path, module), "/")
		for _, function := range found.Funcs {
			name := strings.TrimPrefix(pkg+"."+function.Name, ".")
			needed[name] = true
			if unreached[name] == "" && !offered(pkg, function.Name) {
				t.Errorf("%s:%d: neither the binary nor an example calls %s; delete it", function.Position.File,
					function.Position.Line, function.Name)
			}
		}
	}
	for name := range unreached {
		if !needed[name] {
			t.Errorf("the exception %s is no longer needed", name)
		}
	}
}

// offered reports whether a function is one that programs outside this repository may call.
func offered(pkg, function string) bool {
	if pkg == "" {
		pkg = "."
	}
	for part := range strings.SplitSeq(function, ".") {
		if !unicode.IsUpper([]rune(part)[0]) {
			return false
		}
	}
	return slices.Contains(public, pkg)
}
