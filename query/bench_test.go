package query

import (
	"bytes"
	"context"
	"testing"

	"github.com/fit-eval/fit/query/internal/gentrace"
)

// BenchmarkScan is the way of one line through the scanner, on one core.
func BenchmarkScan(b *testing.B) {
	var text bytes.Buffer
	if err := gentrace.Write(&text, gentrace.Config{Bytes: 16 << 20, Seed: 1}); err != nil {
		b.Fatal(err)
	}
	one := &batch{block: block{data: text.Bytes()}}
	scanner := newLineScanner()
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		one.scan(scanner, nil)
	}
	if len(one.problems) > 0 {
		b.Fatalf("problems %+v", one.problems)
	}
}

// BenchmarkCount is a whole question, on all cores, from memory.
func BenchmarkCount(b *testing.B) {
	var text bytes.Buffer
	if err := gentrace.Write(&text, gentrace.Config{Bytes: 64 << 20, Seed: 1}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		lines := 0
		err := parallelScan(context.Background(), newBlockReader(bytes.NewReader(text.Bytes()), -1), nil,
			func(b *batch) error {
				lines += len(b.events)
				return nil
			})
		if err != nil || lines == 0 {
			b.Fatal(lines, err)
		}
	}
}

// BenchmarkStrings is the inner loop alone.
func BenchmarkStrings(b *testing.B) {
	text := append(append([]byte{'"'},
		bytes.Repeat([]byte(`the config module handler returns value error test build deploy service schema index cache retry\n`), 1000)...), '"')
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s := scanner{b: text}
		if _, _, ok := s.str(); !ok {
			b.Fatal("no string")
		}
	}
}
