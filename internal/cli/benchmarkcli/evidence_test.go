package benchmarkcli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/ledger"
)

// ledgerOf writes a ledger of its own into a directory: each arm's word has a letter per run of
// every task.
func (c *command) ledgerOf(dir, revision string, tasks int, arms map[string]string) {
	c.t.Helper()
	var records []ledger.Record
	for arm, word := range arms {
		for i := range tasks {
			for run, letter := range word {
				verdict := map[rune]string{'P': ledger.Pass, 'F': ledger.Fail}[letter]
				records = append(records, ledger.Record{
					TaskID: fmt.Sprintf("t%02d", i), RunIndex: run, Attempt: 1, Arm: arm, ArmHash: arm, Experiment: dir,
					FamilyRevision: revision, Verdict: verdict, Final: true, Agent: "builtin",
					Grade: &ledger.Grade{Verdict: verdict, GatesPass: true, Healthy: true},
				})
			}
		}
	}
	merged, err := ledger.Merge(records)
	if err != nil {
		c.t.Fatal(err)
	}
	var out bytes.Buffer
	if err := ledger.Write(&out, merged); err != nil {
		c.t.Fatal(err)
	}
	c.write(map[string]string{dir + "/results.jsonl": out.String()})
}

func TestCompareOfADirectoryWithSeveralArmsIsOneTable(t *testing.T) {
	c := newCommand(t)
	c.ledgerOf("runs", "r", 12, map[string]string{"a": "FFF", "b": "PPP", "c": "PPF", "d": "PPF"})
	c.want(0, "compare", "runs")
	c.contains(c.stdout, "b against a", "d against c", "6 comparisons", "rank 2: c, d (cannot be told apart)")
	c.want(0, "compare", "runs", "--pairs", "baseline", "--format", "json")
	c.contains(c.stdout, `"baseline": "a"`, `"claim": "improved"`)
	c.want(1, "compare", "runs", "--fail-on", "improved")
	c.want(0, "compare", "runs", "--fail-on", "regressed", "--format", "markdown")
}

func TestCompareAcrossRevisionsMustBeAskedFor(t *testing.T) {
	c := newCommand(t)
	c.ledgerOf("old", "r1", 12, map[string]string{"a": "FFF"})
	c.ledgerOf("new", "r2", 12, map[string]string{"a": "PPP"})
	c.want(2, "compare", "old", "new")
	c.contains(c.stderr, "--across-revisions", "r1", "r2")
	c.want(0, "compare", "old", "new", "--across-revisions")
	c.contains(c.stdout, "Improved", "different revisions of the family")
}

func TestNothingIsNoGoodAnswer(t *testing.T) {
	c := newCommand(t)
	c.write(map[string]string{"foreign/README.md": "x", "empty/results.jsonl": ""})
	tinyFamily(t, filepath.Join(c.dir, "family"), 1)
	for dir, code := range map[string]int{"foreign": 2, "empty": 3, "nowhere": 2} {
		c.want(code, "list", dir, "--verify")
		c.want(code, "merge", "--input", dir)
		c.want(code, "grade", "--family", "family", "--input", dir)
	}
}

func TestGatesAndMetricsAreCheckedBeforeAnythingElse(t *testing.T) {
	c := newCommand(t)
	c.ledgerOf("runs", "r", 12, map[string]string{"a": "PPP"})
	c.want(2, "report", "--input", "runs", "--min-pass-rate", "80")
	c.contains(c.stderr, "want a share from 0 to 1")
	c.want(2, "run", "--family", "nowhere", "--min-pass-rate", "-1")
	c.want(2, "report", "--input", "runs", "--metrics", "/dev/full")
	c.contains(c.stderr, "not a regular file")
	c.want(2, "report", "--input", "runs", "--metrics", "/dev/zero")
	c.want(1, "report", "--input", "runs", "--min-pass-rate", "0.99")
	c.want(0, "report", "--input", "runs", "--min-pass-rate", "0.7")
}

func TestGradeRefusesAFinalDirectoryThatWasChanged(t *testing.T) {
	c, run := tiny(t, 1)
	c.want(0, run...)
	c.want(0, "grade", "--family", "family", "--input", "out")
	answers, err := filepath.Glob(filepath.Join(c.dir, "out/runs/*/*/*/*/cwd/answer.txt"))
	if err != nil || len(answers) == 0 {
		t.Fatalf("%v %v", answers, err)
	}
	before, err := os.ReadFile(answers[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(answers[0], []byte(strings.Repeat("4", len(before))), 0o644); err != nil {
		t.Fatal(err)
	}
	c.want(1, "grade", "--family", "family", "--input", "out")
	c.contains(c.stderr, "not the one that was recorded")
}
