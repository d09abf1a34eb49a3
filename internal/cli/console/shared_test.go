package console

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// What goroutines write to both streams arrives whole, also where both are one.
func TestGoroutinesWriteToOneConsole(t *testing.T) {
	const writers, lines = 8, 500
	var both bytes.Buffer
	con := (&Console{Stdout: &both, Stderr: &both}).Shared()
	var working sync.WaitGroup
	for range writers {
		working.Go(func() {
			for range lines {
				fmt.Fprintln(con.Stdout, "to standard output")
				fmt.Fprintln(con.Stderr, "to standard error")
			}
		})
	}
	working.Wait()
	for _, line := range []string{"to standard output\n", "to standard error\n"} {
		if got := strings.Count(both.String(), line); got != writers*lines {
			t.Errorf("%q came %d times of %d", line, got, writers*lines)
		}
	}
}
