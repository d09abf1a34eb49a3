package results_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/foreign"
	"github.com/fit-eval/fit/internal/report/results"
)

// keptTables names the tables of the process that compares them.
const keptTables = "FIT_KEPT_TABLES"

// TestAComparisonKeepsEveryRunOnce: a record takes more than a kilobyte, so that every copy of all
// of them counts.
func TestAComparisonKeepsEveryRunOnce(t *testing.T) {
	const tasks = 20_000
	if dir := os.Getenv(keptTables); dir != "" { // alone in its process
		reader := results.Reader{
			Load: func(path string) (*results.Results, error) {
				return results.Load([]string{path}, false, &foreign.Options{})
			},
			Build: func(found *results.Results) (*report.Report, error) {
				return found.Build(t.Context(), results.Auditor{}, []int{1}, false)
			},
		}
		groups, err := reader.Sides([]string{filepath.Join(dir, "a.csv"), filepath.Join(dir, "b.csv")})
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		t.Logf("%d bytes a run", memory.HeapAlloc/(2*tasks))
		runtime.KeepAlive(groups)
		return
	}
	dir := t.TempDir()
	for _, name := range []string{"a.csv", "b.csv"} {
		var text strings.Builder
		text.WriteString("task,pass,cost_usd,input_tokens,output_tokens,seconds\n")
		for i := range tasks {
			fmt.Fprintf(&text, "t%d,%d,0.25,1000,%d,1.5\n", i, i%2, i)
		}
		write(t, filepath.Join(dir, name), []byte(text.String()))
	}
	alone := exec.Command(os.Args[0], "-test.run=^TestAComparisonKeepsEveryRunOnce$", "-test.v")
	alone.Env = append(os.Environ(), keptTables+"="+dir)
	out, err := alone.CombinedOutput()
	found := regexp.MustCompile(`(\d+) bytes a run`).FindSubmatch(out)
	if err != nil || found == nil {
		t.Fatalf("%v: %s", err, out)
	}
	if bytes, _ := strconv.Atoi(string(found[1])); bytes > 3800 {
		t.Errorf("a comparison keeps %d bytes a run", bytes)
	} else {
		t.Logf("%d bytes a run", bytes)
	}
}
