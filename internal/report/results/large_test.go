package results_test

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/report/foreign"
	"github.com/fit-eval/fit/internal/testenv"
)

const (
	largeLogSize = "FIT_SAMPLES"   // of the log, in samples of 10 KB
	largeLogFile = "FIT_LARGE_LOG" // for the process that reads it
)

// A large log is read in less than 200 MB, and at a third of the speed at which its text is
// checked, or better.
func TestALargeLogIsReadInLittleMemory(t *testing.T) {
	testenv.Measurement(t, "bench-results")
	if path := os.Getenv(largeLogFile); path != "" { // the process that reads it
		start := time.Now()
		runs, err := foreign.Read(path, foreign.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("read %d runs in %s", runs.Len(), time.Since(start))
		return
	}
	samples, err := strconv.Atoi(os.Getenv(largeLogSize))
	if err != nil {
		t.Fatalf("%s: %v", largeLogSize, err)
	}
	path := filepath.Join(t.TempDir(), "x.eval")
	unpacked := writeLargeLog(t, path, samples, largeSample)
	best, check, memory := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64), int64(0)
	for range 3 {
		took, used := readLargeLog(t, path, samples)
		best, memory = min(best, took), max(memory, used)
		text := largeSample(0)
		start := time.Now()
		for range samples {
			if !json.Valid(text) {
				t.Fatal("not JSON")
			}
		}
		check = min(check, time.Since(start))
	}
	t.Logf("%d samples of %d MB: read in %s, %.2f times as long as json.Valid, which takes %s; %d MB resident", samples,
		unpacked>>20, best, float64(best)/float64(check), check, memory>>20)
	if best > 3*check {
		t.Errorf("reading takes %s, checking %s", best, check)
	}
	if memory > 200<<20 {
		t.Errorf("reading takes %d MB", memory>>20)
	}
}

// readLargeLog reads the log in a process of its own, and returns how long it took and the most
// memory that the process had.
func readLargeLog(t *testing.T, path string, samples int) (time.Duration, int64) {
	t.Helper()
	reader := exec.Command(os.Args[0], "-test.run=^TestALargeLogIsReadInLittleMemory$", "-test.v")
	reader.Env = append(os.Environ(), largeLogFile+"="+path)
	out, err := reader.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, said, _ := strings.Cut(string(out), "runs in ")
	took, err := time.ParseDuration(strings.Fields(said + " none")[0])
	if err != nil || !strings.Contains(string(out), fmt.Sprintf(" %d runs in ", samples)) {
		t.Fatalf("%v: %s", err, out)
	}
	return took, reader.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
}

func largeSample(i int) []byte {
	return fmt.Appendf(nil, `{"id": %d, "epoch": 1, "input": "x%d", "target": "y", "messages": [{"role": "assistant", `+
		`"content": "%s"}], "scores": {"match": {"value": "C"}}}`, i, i,
		strings.Repeat("the agent looks at the next file and says what it found; ", 180))
}

// writeLargeLog writes a log member by member, and returns how much its samples unpack to.
func writeLargeLog(t *testing.T, path string, samples int, sample func(i int) []byte) (unpacked int) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	archive := zip.NewWriter(file)
	add := func(name string, text []byte) {
		var member io.Writer
		if member, err = archive.Create(name); err == nil {
			_, err = member.Write(text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range samples {
		text := sample(i)
		unpacked += len(text)
		add(fmt.Sprintf("samples/%d_epoch_1.json", i), text)
	}
	add("header.json", asJSON(t, inspectHeader(runsOf("m", 1))))
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return unpacked
}
