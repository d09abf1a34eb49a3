package grade

import (
	stdcmp "cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/task"
)

// swebenchCase is a log, and what SWE-bench's own code says of it.
type swebenchCase struct {
	Name       string   `json:"name"`
	Parser     string   `json:"parser"`
	Log        string   `json:"log"`
	FailToPass []string `json:"failToPass"`
	PassToPass []string `json:"passToPass"`
	Exit       int      `json:"exit"`
	EvalType   string   `json:"evalType"`
	// Outside says that the log stands before the markers.
	Outside  bool                 `json:"outside"`
	Statuses map[string]logStatus `json:"statuses"` // nil: the log is void
	Resolved bool                 `json:"resolved"`
}

func swebenchCases(t *testing.T) []swebenchCase {
	t.Helper()
	content, err := os.ReadFile("testdata/swebench.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []swebenchCase `json:"cases"`
	}
	if err := json.Unmarshal(content, &file); err != nil || len(file.Cases) < 70 {
		t.Fatal(len(file.Cases), err)
	}
	return file.Cases
}

// instances loads the cases as tasks, from a file of rows.
func instances(t *testing.T, cases []swebenchCase) []task.Task {
	t.Helper()
	var rows []byte
	for i, c := range cases {
		row, err := json.Marshal(map[string]any{
			"instance_id":       fmt.Sprintf("a__b-%d", i),
			"repo":              "a/b",
			"base_commit":       "0123456789abcdef",
			"problem_statement": "It is broken.",
			"eval_script":       "true",
			"log_parser":        c.Parser,
			"eval_type":         stdcmp.Or(c.EvalType, "pass_and_fail"),
			"FAIL_TO_PASS":      c.FailToPass,
			"PASS_TO_PASS":      c.PassToPass,
		})
		if err != nil {
			t.Fatal(err)
		}
		rows = append(append(rows, row...), '\n')
	}
	file := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(file, rows, 0o600); err != nil {
		t.Fatal(err)
	}
	family, err := task.Load(t.Context(), file, task.Options{})
	if err != nil || len(family.Warnings) > 0 || len(family.Tasks) != len(cases) {
		t.Fatal(err, family.Warnings)
	}
	return family.Tasks
}

// The status of every test and the verdict on the instance are those of SWE-bench's own code.
func TestLogsAreGradedAsBySWEBench(t *testing.T) {
	cases := swebenchCases(t)
	tasks := instances(t, cases)
	for i, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			shown := instanceRun{applied: true, log: []byte(c.Log), status: c.Exit}
			if !c.Outside {
				shown.tests = shown.log
			}
			g := &grading{Config: Config{Task: &tasks[i]}, instance: &InstanceReport{}}
			g.resolve(shown)
			if g.instance.Resolved != c.Resolved {
				t.Errorf("resolved: %v, SWE-bench says %v", g.instance.Resolved, c.Resolved)
			}
			if c.Statuses == nil {
				return
			}
			results, _ := shown.results(tasks[i].Instance.LogParser)
			if diff := cmp.Diff(c.Statuses, results.statuses); diff != "" {
				t.Error(diff)
			}
		})
	}
}
