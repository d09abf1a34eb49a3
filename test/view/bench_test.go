package view

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/report/versus/versustest"
	"github.com/fit-eval/fit/internal/testenv"
)

// TestGigabyte holds the bounds of a long trace: make bench-view. The index is there, as it is
// after the trace was opened once.
func TestGigabyte(t *testing.T) {
	testenv.Measurement(t, "bench-view")
	b := chromium(t)
	path := filepath.Join(t.TempDir(), "trace.ndjson")
	entries := gigabyte(t, path)
	url := serve(t, path)
	args := map[string]any{"url": url, "entries": entries}
	b.run(t, "benchTrace", args)
	got := decode[struct{ Ms, Jump, Heap int }](t, b.run(t, "benchTrace", args))
	t.Logf("first paint %d ms, jump to the end %d ms, heap %d MB", got.Ms, got.Jump, got.Heap>>20)
	if got.Ms > 1000 || got.Jump > 500 || got.Heap > 200<<20 {
		t.Error("bounds: first paint 1000 ms, jump 500 ms, heap 200 MB")
	}
}

// TestLargeGrid holds the bound of 5,000 cells, and that of 500 cells in one file: make bench-view.
func TestLargeGrid(t *testing.T) {
	testenv.Measurement(t, "bench-view")
	b := chromium(t)
	large := grid(t, 500, 5)
	got := decode[struct{ Ms, Rows, Heap int }](t, b.run(t, "benchGrid", map[string]any{
		"url": serve(t, large), "tasks": 500,
	}))
	t.Logf("5,000 cells: first paint %d ms, %d rows drawn, heap %d MB", got.Ms, got.Rows, got.Heap>>20)
	if got.Ms > 1000 {
		t.Error("bound: first paint 1000 ms")
	}
	path := exported(t, "benchmark", "report", "--input", grid(t, 50, 5), "--format", "html")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("500 cells in one file: %d KB", info.Size()>>10)
	if info.Size() >= 2_000_000 {
		t.Error("bound: 2 MB, which are 2,000,000 bytes")
	}
}

// grid writes a run directory of two arms.
func grid(t *testing.T, tasks, runs int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "grid")
	large := versustest.Directory{
		Arms: []versustest.Arm{
			{Name: "before", Agent: "claude-code", Model: "claude-sonnet-4-5", Does: "gives-up"},
			{Name: "after", Agent: "claude-code", Model: "claude-sonnet-4-5", Does: versustest.Solves},
		},
		Tasks:     tasks,
		Runs:      runs,
		Workspace: "export",
	}
	if err := large.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// gigabyte writes a trace of that size and returns how many entries it has.
func gigabyte(t *testing.T, path string) int {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriterSize(file, 1<<20)
	_, _ = out.WriteString(begin().String())
	entries, size := 1, 0
	for padding := strings.Repeat("all work and no play ", 100); size < 1<<30; entries++ {
		var c conversation
		c.text(fmt.Sprintf("turn %d %s", entries, padding))
		size += c.Len()
		_, _ = out.WriteString(c.String())
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return entries
}
