package bench

import (
	"bytes"
	"io"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/agent/catalog"
	"github.com/fit-eval/fit/evidence"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

const (
	// mostOfFold is how much longer than the flat fold the evidence may take. The small run of
	// every day, on a busy machine and perhaps with the race detector, may take twice that.
	mostOfFold      = 1.5
	mostOfSmallFold = 3
	// mostOfShort is how much more memory a trace takes that is a hundred times as long as another.
	mostOfShort = 1.3
)

// TestEvidence collects the evidence of traces of every kind that the recordings hold, beside the
// flat fold of the same trace on one core: at most half as much processor time again, over all of
// them. Every day it does so with a little of one kind.
func TestEvidence(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	only, size, corpusSize, most := "stream-json", 4<<20, 1<<20, float64(mostOfSmallFold)
	if os.Getenv("FIT_BENCH") != "" {
		// a part of the name of the kinds to look at
		only, size, corpusSize, most = os.Getenv("FIT_BENCH_ONLY"), streamBytes, corpusBytes, mostOfFold
	}
	dialects := catalog.Default().Dialects()
	kinds := streams(t, dialects)
	var folds, evidences float64
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		if !kinds[name].envelope || !strings.Contains(name, only) {
			continue
		}
		corpus := kinds[name].repeated(corpusSize)
		var fold, found float64
		for range 3 {
			fold = least(fold, cpuOf(t, func() { foldFlat(t, endless(corpus, size), dialects) }))
			found = least(found, cpuOf(t, func() { collect(t, endless(corpus, size), dialects) }))
		}
		folds, evidences = folds+fold, evidences+found
		t.Logf("%-42s fold %5.0f MB/s · evidence %5.0f MB/s · ratio %.2f", name, float64(size)/1e6/fold,
			float64(size)/1e6/found, found/fold)
	}
	t.Logf("ratio of all %.2f", evidences/folds)
	if evidences > most*folds {
		t.Errorf("evidence takes %.2f times as long as the flat fold; the most is %.2f", evidences/folds, most)
	}
}

// TestEvidenceTakesFlatMemory: a trace that is a hundred times as long as another takes no more
// memory to look at, neither from the system nor in what lives when all of it has been read.
func TestEvidenceTakesFlatMemory(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	short, long, most := 4<<20, 40<<20, 2.0 // the collector's rhythm is most of what so little takes
	if os.Getenv("FIT_BENCH") != "" {
		short, long, most = 10<<20, 1<<30, mostOfShort
	}
	dialects := catalog.Default().Dialects()
	for name, kind := range streams(t, dialects) {
		if !kind.envelope || !strings.HasPrefix(name, "stream-json 2.1.325") {
			continue
		}
		corpus := kind.repeated(1 << 20)
		memoryOf(t, corpus, short, dialects) // the program itself, which is paid for once
		ofShort, ofLong := memoryOf(t, corpus, short, dialects), memoryOf(t, corpus, long, dialects)
		t.Logf("%s: %d MB: %+v · %d MB: %+v bytes", name, short>>20, ofShort, long>>20, ofLong)
		if float64(ofLong.system) > most*float64(ofShort.system) ||
			float64(ofLong.lives) > most*float64(ofShort.lives) {
			t.Errorf("%s: the long trace takes %+v bytes, and the short one %+v", name, ofLong, ofShort)
		}
	}
}

// memory is what a trace takes: at most from the system, and alive at its end.
type memory struct{ system, lives uint64 }

func memoryOf(t *testing.T, corpus []byte, size int, dialects session.Dialects) memory {
	t.Helper()
	debug.FreeOSMemory()
	before := live()
	watched := &watchedReader{Reader: endless(corpus, size)}
	collect(t, watched, dialects)
	runtime.KeepAlive(corpus) // it counts before and after
	return memory{watched.system, watched.lives - min(before, watched.lives)}
}

// watchedReader looks at the memory once in every megabyte, and at the end.
type watchedReader struct {
	io.Reader
	read          int
	system, lives uint64
}

func (r *watchedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.read += n; r.read >= 1<<20 {
		r.read = 0
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		r.system = max(r.system, stats.Sys-stats.HeapReleased)
	}
	if err != nil {
		r.lives = live()
	}
	return n, err
}

func least(a, b float64) float64 {
	if a == 0 {
		return b
	}
	return min(a, b)
}

func cpuOf(t *testing.T, run func()) float64 {
	t.Helper()
	runtime.GC()
	began := cpuSeconds(t)
	run()
	return cpuSeconds(t) - began
}

// endless repeats a corpus until a size is reached.
func endless(corpus []byte, size int) io.Reader {
	var parts []io.Reader
	for read := 0; read < size; read += len(corpus) {
		parts = append(parts, bytes.NewReader(corpus))
	}
	return onlyReader{io.MultiReader(parts...)}
}

func foldFlat(t *testing.T, r io.Reader, dialects session.Dialects) {
	t.Helper()
	sessions, err := session.Read(r, dialects, session.Options{Flat: true})
	if err != nil || len(sessions) != 1 {
		t.Fatalf("%d sessions: %v", len(sessions), err)
	}
}

func collect(t *testing.T, r io.Reader, dialects session.Dialects) *evidence.Run {
	t.Helper()
	run, err := evidence.Collect(evidence.Sources{
		Task:     evidence.Task{ID: "t", VerifyCommand: "make check"},
		Record:   &ledger.Record{TaskID: "t", Verdict: ledger.Fail, Verify: &ledger.Verify{ExitCode: 1}},
		Trace:    r,
		Diff:     []byte("--- a/a.go\n+++ b/a.go\n@@ -1 +1 @@\n-a\n+b\n"),
		Dialects: dialects,
	})
	if err != nil || !run.Captured {
		t.Fatalf("captured %v: %v", run != nil && run.Captured, err)
	}
	return run
}
