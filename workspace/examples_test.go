package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/sandbox"
	"github.com/fit-eval/fit/task"
)

// example loads a task of one of the example families.
func example(t *testing.T, family, id string) (*task.Family, *task.Task) {
	t.Helper()
	loaded, err := task.Load(t.Context(), filepath.Join("..", "examples", family), task.Options{Environ: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	for i := range loaded.Tasks {
		if loaded.Tasks[i].ID == id {
			return loaded, &loaded.Tasks[i]
		}
	}
	t.Fatalf("family %s has no task %s", family, id)
	return nil, nil
}

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

func TestAWarmedGoCacheMakesTestsFastAndStaysAsItIs(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the standard library")
	}
	needBwrap(t)
	testenv.NeedTool(t, "go")
	family, one := example(t, "go-family", "parse-size")
	cfg := Config{
		Root: t.TempDir(), Name: "cell", Family: family, Task: one, Environ: os.Environ(),
		Caches: NewCaches(filepath.Join(t.TempDir(), "caches")), Bases: NewBases(filepath.Join(t.TempDir(), "bases")),
	}
	began := time.Now()
	if err := cfg.Caches.Warm(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	cold := time.Since(began)
	again := time.Now()
	if err := cfg.Caches.Warm(t.Context(), cfg); err != nil || time.Since(again) > time.Second {
		t.Errorf("warmed again in %v, %v", time.Since(again), err)
	}
	before, err := digestOf(filepath.Join(cfg.Caches.dir, "go", "build"))
	if err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	w, err := Prepare(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Remove(context.Background()) })
	t.Logf("prepared in %v", time.Since(began))
	poison := "for f in $(find $GOCACHE -name '*-d' | head -50); do echo poison >>$f; done 2>&1 | head -1; rm -rf $GOCACHE/0* 2>/dev/null; go vet ./... && go build ./... && echo built"
	if _, out := run(t, w.Agent(), "sh", "-c", poison); !strings.Contains(out, "ead-only") ||
		!strings.HasSuffix(out, "built\n") {
		t.Errorf("the agent could write to the shared cache, or could not build: %s", out)
	}
	c, err := w.Copy(t.Context(), CopyConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{one.Suite.Dir, one.Solution} {
		if err := layOver(t.Context(), task.Overlay{From: from}, c.Dir); err != nil {
			t.Fatal(err)
		}
	}
	began = time.Now()
	result, out := run(t, w.Grader(c), "go", "test", "-json", "-count=1", "-vet=off", "./...")
	warm := time.Since(began)
	if result.ExitCode != 0 || !strings.Contains(out, `"Action":"pass"`) {
		t.Fatalf("exit %d: %s", result.ExitCode, out)
	}
	t.Logf("go test: %v with the warmed cache, which took %v to fill", warm, cold)
	if cold < 2*warm {
		t.Errorf("the warmed cache is of no use: %v with it, and %v to fill it", warm, cold)
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
