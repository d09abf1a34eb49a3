package view

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGigabyte holds the bounds of a long trace: make bench-view. The index is there, as it is
// after the trace was opened once.
func TestGigabyte(t *testing.T) {
	if os.Getenv("FIT_BENCH") == "" {
		t.Skip("benchmarks run with make bench-view (FIT_BENCH=1)")
	}
	b := chromium(t)
	path := filepath.Join(t.TempDir(), "trace.ndjson")
	entries := gigabyte(t, path)
	url := serve(t, path)
	args := map[string]any{"url": url, "entries": entries, "timeout": 120_000}
	b.run(t, "benchTrace", args)
	got := decode[struct{ Ms, Jump, Heap int }](t, b.run(t, "benchTrace", args))
	t.Logf("first paint %d ms, jump to the end %d ms, heap %d MB", got.Ms, got.Jump, got.Heap>>20)
	if got.Ms > 1000 || got.Jump > 500 || got.Heap > 200<<20 {
		t.Error("bounds: first paint 1000 ms, jump 500 ms, heap 200 MB")
	}
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
