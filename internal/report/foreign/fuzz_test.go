package foreign

import (
	"os"
	"path/filepath"
	"testing"
)

// fuzzFile reads any content in a format: whatever it says, it ends, and every record that it makes
// is valid.
func fuzzFile(f *testing.F, format, name string, seeds ...string) {
	f.Helper()
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		runs, err := Read(path, Options{Format: format})
		if err != nil {
			return
		}
		for _, r := range runs.Records() {
			if err := r.Validate(); err != nil {
				t.Error(err)
			}
		}
	})
}

func FuzzTable(f *testing.F) {
	fuzzFile(f, "table", "x.csv", "task,pass\nt,1\n", "task\tscore\nt\t0.5\n", `{"task":"t","pass":true,"run":1}`,
		"\ufefftask;pass;error\nt;;503\n")
}

func FuzzInspect(f *testing.F) {
	fuzzFile(f, "inspect", "x.json",
		`{"version": 2, "status": "success", "eval": {"model": "m"}, "samples": [{"id": 1, "epoch": 1, "scores": `+
			`{"a": {"value": "C"}}}]}`, `{"version":2,"status":"error","samples":[{"id":"a","epoch":1,"x":NaN}]}`)
}

func FuzzPromptfoo(f *testing.F) {
	fuzzFile(f, "promptfoo", "x.json", `{"evalId": "x", "results": {"results": [{"success": true, "score": 1}]}}`,
		`{"promptIdx": 0, "failureReason": 2, "error": "503"}`, "evalId: x\nresults:\n  results:\n    - success: true\n")
}

func FuzzHarbor(f *testing.F) {
	fuzzFile(f, "harbor", "result.json", `{"task_name": "t", "started_at": "", "verifier_result": {"rewards": {"a": 1}}}`,
		`{"started_at": "", "trial_results": [{"task_name": "t", "exception_info": {}}]}`)
}

func FuzzSWEBench(f *testing.F) {
	fuzzFile(f, "swe-bench", "report.json", `{"resolved_ids": ["a"], "error_ids": ["b"]}`)
}
