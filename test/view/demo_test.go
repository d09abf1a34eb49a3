package view

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// demo is the run directory of one small demo, made once for all tests that only read it.
var demo struct {
	once sync.Once
	dir  string
}

// demoRuns is the number of runs of every task with every arm: enough to see passes and failures.
const demoRuns = "1"

// demoDirectory returns a directory with the finished demo in it.
func demoDirectory(t *testing.T) string {
	t.Helper()
	demo.once.Do(func() {
		dir, err := os.MkdirTemp("", "fit-view-demo-")
		if err != nil {
			t.Fatal(err)
		}
		atTheEnd(func() { _ = os.RemoveAll(dir) })
		cmd := fitCommand(t, "demo", "--runs", demoRuns)
		cmd.Env = append(os.Environ(), "TMPDIR="+dir)
		cmd.Stdout = io.Discard
		if err := cmd.Run(); err != nil {
			t.Errorf("fit demo: %v", err)
			return
		}
		found, _ := filepath.Glob(filepath.Join(dir, "fit-demo-*", "results"))
		if len(found) == 1 {
			demo.dir = found[0]
		}
	})
	if demo.dir == "" {
		t.Fatal("the demo left no run directory")
	}
	return demo.dir
}

// answerOf decodes what a fit command prints as JSON.
func answerOf(t *testing.T, into any, args ...string) {
	t.Helper()
	out, err := fitCommand(t, args...).Output()
	if err != nil && len(out) == 0 {
		t.Fatalf("fit %s: %v", strings.Join(args, " "), err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("fit %s printed no JSON: %v", strings.Join(args, " "), err)
	}
}

// decode reads what a scenario returned.
func decode[T any](t *testing.T, value json.RawMessage) T {
	t.Helper()
	var into T
	if err := json.Unmarshal(value, &into); err != nil {
		t.Fatal(err)
	}
	return into
}
