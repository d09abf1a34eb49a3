package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fit-eval/fit/internal/task"
)

// BenchmarkAttempt measures what an attempt costs beside the agent and the graders: prepare, seal,
// compare, copy, remove.
func BenchmarkAttempt(b *testing.B) {
	family, err := task.Load(b.Context(), filepath.Join("..", "..", "examples", "node-family"), task.Options{})
	if err != nil {
		b.Fatal(err)
	}
	cfg := Config{
		Root: b.TempDir(), Family: family, Task: &family.Tasks[0], Environ: os.Environ(), Ports: &Ports{},
		Bases: NewBases(filepath.Join(b.TempDir(), "bases")),
	}
	for i := 0; b.Loop(); i++ {
		cfg.Name = fmt.Sprint(i)
		w, err := Prepare(b.Context(), cfg)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := w.Seal(b.Context()); err != nil {
			b.Fatal(err)
		}
		if _, err := w.Diff(b.Context()); err != nil {
			b.Fatal(err)
		}
		if _, err := w.Copy(b.Context(), CopyConfig{}); err != nil {
			b.Fatal(err)
		}
		if err := w.Remove(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
