package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
)

// run runs a program in a place and returns what it printed.
func run(t *testing.T, place Place, argv ...string) (sandbox.SpawnResult, string) {
	t.Helper()
	var out strings.Builder
	spec := sandbox.SpawnSpec{
		Argv: argv, Dir: place.Dir, Env: place.Env.List(), Isolation: place.Isolation, Limits: place.Limits,
		Timeout: 5 * time.Minute,
	}
	result, err := sandbox.NewSpawner().Spawn(t.Context(), spec, &out, &out)
	if err != nil {
		t.Fatalf("%v: %v", argv, err)
	}
	return result, out.String()
}

func needBwrap(t *testing.T) {
	t.Helper()
	if err := bwrapWorks(t.Context()); err != nil {
		testenv.Missing(t, "%v", err)
	}
}

// The package that is compiled imports no other. That hidden tests run with a warmed cache is
// seen in test/cheats.
func TestAWarmedGoCacheIsUsedAndStaysAsItIs(t *testing.T) {
	needBwrap(t)
	testenv.NeedTool(t, "go")
	fam, one := family(t, map[string]string{
		"family.yaml":    "cache: [go]\n",
		"workdir/go.mod": "module small\n\ngo 1.24\n",
		"workdir/a.go":   "package small\n\nimport \"unicode/utf8\"\n\nvar Size = utf8.RuneLen('x')\n",
	})
	cfg := Config{
		Root: t.TempDir(), Name: "cell", Family: fam, Task: one, Environ: os.Environ(),
		Caches: NewCaches(filepath.Join(t.TempDir(), "caches")), Bases: NewBases(filepath.Join(t.TempDir(), "bases")),
	}
	if err := cfg.Caches.Warm(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	before, err := digestOf(filepath.Join(cfg.Caches.dir, "go", "build"))
	if err != nil {
		t.Fatal(err)
	}
	again := cfg
	again.Root = "/nowhere" // what is warm needs no scratch
	if err := cfg.Caches.Warm(t.Context(), again); err != nil {
		t.Errorf("warmed a second time: %v", err)
	}
	w := prepare(t, cfg)
	poison := "for f in $(find $GOCACHE -name '*-d' | head -50); do echo poison >>$f; done 2>&1 | head -1; rm -rf $GOCACHE/0* 2>/dev/null; go vet ./... && go build ./... && echo built"
	if _, out := run(t, w.Agent(), "sh", "-c", poison); !strings.Contains(out, "ead-only") ||
		!strings.HasSuffix(out, "built\n") {
		t.Errorf("the agent could write to the shared cache, or could not build: %s", out)
	}
	c, err := w.Copy(t.Context(), CopyConfig{})
	if err != nil {
		t.Fatal(err)
	}
	// The import path of what is compiled here is in its object file.
	result, out := run(t, w.Grader(c), "sh", "-c", `go build ./... &&
		cd "$HOME"/.cache/fit-go-build && grep -lF 'go object' ./*-d | wc -l`)
	if result.ExitCode != 0 || out != "1\n" {
		t.Errorf("exit %d; compiled %q packages, want only the one that is not in the cache", result.ExitCode, out)
	}
	if after, err := digestOf(filepath.Join(cfg.Caches.dir, "go", "build")); err != nil || after != before {
		t.Errorf("the shared cache has changed: %v", err)
	}
}

// digestOf reports whether anything in a directory has changed.
func digestOf(dir string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(sum, "%s %d\n%s", path, len(content), content)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}
