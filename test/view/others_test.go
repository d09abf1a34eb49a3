package view

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"
)

// TestResultsOfOthersAreShownLikeRuns: a log of Inspect is shown with its runs and the trace of
// each.
func TestResultsOfOthersAreShownLikeRuns(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log.json")
	content := `{"version": 2, "status": "success", "eval": {"task": "sums", "model": "m"}, "samples": [
		{"id": 1, "epoch": 1, "messages": [{"role": "user", "content": "question 1"}], "scores": {"s": {"value": "C"}}},
		{"id": 2, "epoch": 1, "messages": [{"role": "user", "content": "question 2"}], "scores": {"s": {"value": "I"}}},
		{"id": 3, "epoch": 1, "messages": [], "error": {"message": "503"}}]}`
	if err := os.WriteFile(log, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	a := askView(t, serve(t, log))
	var list struct {
		Experiments []struct {
			ID     string
			Dir    string
			Passed int
			Failed int
			Errors int
		}
	}
	a.read(t, "/api/experiments", &list)
	if len(list.Experiments) != 1 {
		t.Fatalf("%+v", list)
	}
	one := list.Experiments[0]
	if one.Dir != log || one.Passed != 1 || one.Failed != 1 || one.Errors != 1 {
		t.Errorf("%+v", one)
	}
	var cell struct {
		Traces []struct{ Trace string }
	}
	a.read(t, "/api/experiments/"+one.ID+"/cells/2/m/0", &cell)
	if len(cell.Traces) != 1 {
		t.Fatalf("%+v", cell)
	}
	var trace struct {
		Verdict  string
		Overview struct{ TaskPrompt string }
	}
	a.read(t, "/api/trace/overview?trace="+url.QueryEscape(cell.Traces[0].Trace), &trace)
	if trace.Verdict != "fail" || trace.Overview.TaskPrompt != "question 2" {
		t.Errorf("%+v", trace)
	}
}
