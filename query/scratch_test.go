package query

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

func TestScratch(t *testing.T) {
	path := os.Getenv("SCRATCH")
	if path == "" {
		t.Skip()
	}
	for range 3 {
		tr, err := Open(path, Options{IndexFrom: -1})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		n, _, err := tr.Count(context.Background())
		fmt.Println("count", n, err, time.Since(start))
		start = time.Now()
		o, info, err := tr.Overview(context.Background())
		fmt.Println("overview", o.Tools, info.Problems, err, time.Since(start))
	}
}
