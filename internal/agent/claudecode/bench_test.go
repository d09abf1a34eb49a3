package claudecode

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/session/sessiontest"
)

// BenchmarkEnrich reads all recordings of the stream over and over, as one long stream, in flat
// memory.
func BenchmarkEnrich(b *testing.B) {
	var all bytes.Buffer
	for _, file := range sessiontest.Recordings(b, "testdata/2.1.*/*.jsonl") {
		data, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		if bytes.HasPrefix(data, []byte(`{"dir"`)) {
			continue // a recording of both directions is unwrapped first, which a trace is not
		}
		all.Write(data)
	}
	const repeats = 64
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := cpuSeconds(b)
	b.SetBytes(int64(all.Len()) * repeats)
	for b.Loop() {
		enricher := &session.Enricher{Dialects: New().Dialects(), Options: session.Options{Flat: true}}
		for range repeats {
			if err := enricher.Read(bytes.NewReader(all.Bytes())); err != nil && err != io.EOF {
				b.Fatal(err)
			}
		}
		if sessions := enricher.Sessions(); len(sessions) != 1 || sessions[0].Turns == 0 {
			b.Fatal("nothing was read")
		}
	}
	b.ReportMetric(float64(all.Len())*repeats*float64(b.N)/1e6/(cpuSeconds(b)-began), "MB/cpu-s")
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapSys-before.HeapSys)/(1<<20), "MiB-heap-growth")
}

// cpuSeconds is the CPU time used so far: what holds on a busy machine.
func cpuSeconds(b *testing.B) float64 {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return float64(usage.Utime.Sec+usage.Stime.Sec) + float64(usage.Utime.Usec+usage.Stime.Usec)/1e6
}
