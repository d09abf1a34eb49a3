package scan

import (
	"bytes"
	"context"
	"testing"

	"github.com/fit-eval/fit/internal/query/internal/gentrace"
)

func generated(b *testing.B, size int64) []byte {
	b.Helper()
	var text bytes.Buffer
	if err := gentrace.Write(&text, gentrace.Config{Bytes: size, Seed: 1}); err != nil {
		b.Fatal(err)
	}
	return text.Bytes()
}

// BenchmarkLines is the way of one line through the scanner, on one core.
func BenchmarkLines(b *testing.B) {
	text := generated(b, 16<<20)
	one := &Batch{block: block{data: text}}
	var scanner LineScanner
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		one.scan(&scanner, nil)
	}
	if len(one.Problems) > 0 {
		b.Fatalf("problems %+v", one.Problems)
	}
}

// BenchmarkParallel is a whole stream, on all cores, from memory.
func BenchmarkParallel(b *testing.B) {
	text := generated(b, 64<<20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		lines := 0
		err := Parallel(context.Background(), NewBlocks(bytes.NewReader(text), -1), nil, func(b *Batch) error {
			lines += len(b.Events)
			return nil
		})
		if err != nil || lines == 0 {
			b.Fatal(lines, err)
		}
	}
}
