package bench

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/evidence"
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
// flat fold of the same trace on one core: at most half as much CPU time again, over all of
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
// memory to look at, neither the most that a process has of its own nor what lives when all of it
// has been read.
func TestEvidenceTakesFlatMemory(t *testing.T) {
	dialects := catalog.Default().Dialects()
	if path := os.Getenv(corpusVariable); path != "" {
		reportMemory(t, path, dialects)
		return
	}
	short, long := "10", "100"
	if os.Getenv("FIT_BENCH") != "" {
		long = "1024"
	}
	for name, kind := range streams(t, dialects) {
		if !kind.envelope || !strings.HasPrefix(name, "stream-json 2.1.325") {
			continue
		}
		corpus := filepath.Join(t.TempDir(), "corpus")
		if err := os.WriteFile(corpus, kind.repeated(1<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		ofShort, ofLong := memoryOf(t, corpus, short), memoryOf(t, corpus, long)
		t.Logf("%s: %s MB: %+v · %s MB: %+v bytes", name, short, ofShort, long, ofLong)
		if ofLong.Peak > mostOfShort*ofShort.Peak || ofLong.Lives > mostOfShort*ofShort.Lives {
			t.Errorf("%s: the long trace takes %+v bytes, and the short one %+v", name, ofLong, ofShort)
		}
	}
}

const (
	// corpusVariable names the file that a process repeats until it has read as many megabytes as
	// megabytesVariable says.
	corpusVariable    = "FIT_BENCH_CORPUS"
	megabytesVariable = "FIT_BENCH_MEGABYTES"
)

// memory is what a process takes to look at a trace: at most, and alive at the end.
type memory struct{ Peak, Lives float64 }

func memoryOf(t *testing.T, corpus, megabytes string) (took memory) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestEvidenceTakesFlatMemory$", "-test.v")
	cmd.Env = append(os.Environ(), corpusVariable+"="+corpus, megabytesVariable+"="+megabytes, "GOMAXPROCS=1")
	out, err := cmd.CombinedOutput()
	_, line, _ := strings.Cut(string(out), "took ")
	if _, scanErr := fmt.Sscan(line, &took.Peak, &took.Lives); err != nil || scanErr != nil {
		t.Fatalf("%v, %v: %s", err, scanErr, out)
	}
	return took
}

// reportMemory looks at a trace and prints what that took.
func reportMemory(t *testing.T, path string, dialects session.Dialects) {
	t.Helper()
	corpus, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	megabytes, err := strconv.Atoi(os.Getenv(megabytesVariable))
	if err != nil {
		t.Fatal(err)
	}
	before := live()
	read := &endReader{Reader: endless(corpus, megabytes<<20)}
	collect(t, read, dialects)
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	var kilobytes float64
	if _, err := fmt.Sscan(peak, &kilobytes); err != nil {
		t.Fatal(err)
	}
	fmt.Println("took", kilobytes*1024, read.lives-min(before, read.lives))
	runtime.KeepAlive(corpus) // it counts before and after
}

// endReader notes what lives when the end is read.
type endReader struct {
	io.Reader
	lives uint64
}

func (r *endReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
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
