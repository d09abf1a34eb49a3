package view

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fit-eval/fit/internal/query"
)

// Models that number their calls give the same ids in every lane, and again in the next run.
func TestResultsBelongToTheLastCallOfTheirLane(t *testing.T) {
	const (
		call   = `","seq":0,"event":{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"Bash"}]}}}` + "\n"
		result = `","seq":1,"event":{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"1","content":"`
		end    = `"}]}}}` + "\n"
	)
	path := filepath.Join(t.TempDir(), "trace.ndjson")
	lines := `{"source":"a` + call + `{"source":"b` + call + `{"source":"a` + result + "for a" + end +
		`{"source":"b` + result + "for b" + end + `{"source":"a` + call + `{"source":"a` + result + "later" + end
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	trace, err := query.Open(path, query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	items, err := window(t.Context(), trace, 0, 4)
	var got []string
	for _, item := range items[:2] {
		got = append(got, item.Blocks[0].Result.Text)
	}
	if want := []string{"for a", "for b"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}
