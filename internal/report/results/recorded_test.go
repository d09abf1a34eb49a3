package results_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/report/foreign"
)

// What promptfoo itself wrote, of two providers, one of which answers one test rightly, and a
// service that rejects the other test: three repetitions, and again from its cache.
func TestRecordedOutputsOfPromptfoo(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		runs   int
		doubts string
	}{
		"testdata/promptfoo/repeated.jsonl": {3, ""},
		"testdata/promptfoo/cached.json":    {1, "some answers were cached"},
	} {
		got := map[string]int{}
		records := read(t, name, foreign.Options{})
		for _, r := range records {
			got[r.TaskID+" "+r.Arm+" "+r.Verdict]++
			if known := r.Tokens != nil; known != (want.runs == 3 && r.Verdict != "error") || r.CostUSD != nil {
				t.Errorf("%s: %s: tokens %+v, cost %v", name, r.Key(), r.Tokens, r.CostUSD)
			}
		}
		rows := rowsOf(t, name)
		right, rejected := got[`{"a":2,"b":2} new pass`], got[`{"a":2,"b":9} old error`]
		if fmt.Sprint(got) != fmt.Sprint(rows) || len(got) != 4 || right != want.runs || rejected != want.runs {
			t.Errorf("%s: %v, want %v", name, got, rows)
		}
		doubts := doubtsOf(records)
		if !strings.HasPrefix(doubts, want.doubts) || (doubts == "") != (want.doubts == "") {
			t.Errorf("%s: it says %q", name, doubts)
		}
	}
}

// rowsOf counts what a file of promptfoo says, without any of our readers.
func rowsOf(t *testing.T, name string) map[string]int {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Success  bool
		Vars     map[string]int
		Provider struct{ Label string }
		Reason   int `json:"failureReason"`
	}
	var rows []row
	var whole struct{ Results struct{ Results []row } }
	if json.Unmarshal(content, &whole) == nil {
		rows = whole.Results.Results
	} else {
		for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
			var one row
			if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
				t.Fatal(err)
			}
			rows = append(rows, one)
		}
	}
	counted := map[string]int{}
	for _, one := range rows {
		outcome := map[bool]string{true: "pass", false: "fail"}[one.Success]
		if one.Reason == 2 {
			outcome = "error"
		}
		counted[fmt.Sprintf(`{"a":%d,"b":%d} %s %s`, one.Vars["a"], one.Vars["b"], one.Provider.Label, outcome)]++
	}
	return counted
}

func TestAMetricThatIsNotThereIsRefused(t *testing.T) {
	t.Parallel()
	_, err := foreign.Read("testdata/promptfoo/cached.json", foreign.Options{Score: "style"})
	if err == nil || !strings.Contains(err.Error(), `there is no metric "style"; there are exact, number`) {
		t.Error(err)
	}
}
