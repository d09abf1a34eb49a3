package acp

import (
	"bytes"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/session/sessiontest"
)

// BenchmarkEnrich reads all recordings over and over, as one long stream, in flat memory.
func BenchmarkEnrich(b *testing.B) {
	var all bytes.Buffer
	for _, file := range sessiontest.Recordings(b, recordings) {
		data, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		all.Write(data)
	}
	stream := bytes.Repeat(all.Bytes(), 64)
	began := cpuSeconds(b)
	b.SetBytes(int64(len(stream)))
	for b.Loop() {
		enricher := &session.Enricher{Dialects: dialects(), Options: session.Options{Flat: true}}
		if err := enricher.Read(bytes.NewReader(stream)); err != nil && err != io.EOF {
			b.Fatal(err)
		}
		if sessions := enricher.Sessions(); len(sessions) != 1 || sessions[0].Turns == 0 {
			b.Fatal("nothing was read")
		}
	}
	b.ReportMetric(float64(len(stream))*float64(b.N)/1e6/(cpuSeconds(b)-began), "MB/cpu-s")
}

// cpuSeconds is the processor time used so far: what holds on a busy machine.
func cpuSeconds(b *testing.B) float64 {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return float64(usage.Utime.Sec+usage.Stime.Sec) + float64(usage.Utime.Usec+usage.Stime.Usec)/1e6
}
