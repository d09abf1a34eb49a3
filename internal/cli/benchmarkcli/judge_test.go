package benchmarkcli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/ledger"
)

// Votes of the judge, labels of people and the corrected pass rate, from the command line to the
// report.
func TestAJudgeWithVotesAndLabels(t *testing.T) {
	const tasks = 12
	c := newCommand(t)
	tinyFamily(t, filepath.Join(c.dir, "family"), tasks)
	for i := range tasks {
		c.write(map[string]string{fmt.Sprintf("family/tasks/t%03d/judge.task.md",
			i): "Is the work in {{TASK_DIR}} good?"})
	}
	conclude := func(verdict string, weight int) string {
		return fmt.Sprintf(`{"weight":%d,"calls":[{"mcp":"orchestration/Conclude","input":{"verdict":%q,"summary":"Seen."}}]}`, weight, verdict)
	}
	url := c.model(`{"usage":{"input":100,"output":10},"scenarios":[{"name":"judge","when":{"tool":"orchestration/Conclude"},"turns":[{"choices":[` +
		conclude("success", 3) + "," + conclude("failure", 1) +
		`]},{"text":"Over."}]}],"turns":[{"calls":[{"write":"answer.txt","content":"42\n"}]},{"text":"done"}]}`)
	run := []string{
		"run", "--family", "family", "--agent", "builtin", "--model", "claude-sonnet-4-5", "--judge-model",
		"claude-sonnet-4-5",
		"--output", "out", "--runs", "2", "--judge-votes", "3",
	}
	c.env = append(c.env, "FIT_MODEL_URL="+url+"/c/{cell}/seed/{seed}") // the judge finds its model there, too
	c.want(0, "run", "--family", "family", "--agent", "builtin", "--runs", "1", "--output", "dry", "--dry-run")
	c.contains(c.stdout, "judge: builtin with its default model claude-sonnet-4-5, profile ")
	c.want(0, run...)
	c.want(2, with(run, "--judge-votes", "5")...) // another number is another experiment
	c.contains(c.stderr, "judge")
	contents, err := ledger.ReadFile(filepath.Join(c.dir, "out", experiment.LedgerFile))
	if err != nil {
		t.Fatal(err)
	}
	labels := "labels:\n"
	for i, r := range contents.Records {
		if len(r.JudgeVotes) != 3 {
			t.Fatalf("%d votes", len(r.JudgeVotes))
		}
		human := r.JudgeVerdict.Verdict
		if i%8 == 0 {
			human = map[string]string{ledger.Pass: ledger.Fail, ledger.Fail: ledger.Pass}[human]
		}
		labels += fmt.Sprintf("  - {task: %s, run: %d, human: %s}\n", r.TaskID, r.RunIndex, human)
	}
	c.want(0, "report", "--input", "out", "--format", "text")
	c.contains(c.stdout, "judge: asked about 24 runs", "votes: 3 each", "Krippendorff's α")
	if strings.Contains(c.stdout, "corrected") {
		t.Errorf("corrected without labels:\n%s", c.stdout)
	}
	c.write(map[string]string{"labels.yaml": labels, "wrong.yaml": "labels:\n  - {task: t000, run: 0, human: maybe}\n"})
	c.want(0, "report", "--input", "out", "--labels", "labels.yaml")
	var built report.Report
	if err := json.Unmarshal([]byte(c.stdout), &built); err != nil {
		t.Fatal(err)
	}
	corrected := built.Groups[0].Judge.Corrected
	if corrected == nil || corrected.Calibration.M1+corrected.Calibration.M0 != 24 {
		t.Errorf("%+v", corrected)
	}
	c.want(2, "report", "--input", "out", "--labels", "wrong.yaml")
	c.contains(c.stderr, "wrong.yaml:2:")

	// The labels of the family travel with the run, and mistakes in them are reported before
	// anything is run.
	digest := contents.Records[0].Digests.Judge
	own := "judge:\n  digests: [" + digest + "]\nlabels:\n"
	for i := range 80 {
		verdict := []string{"pass", "fail"}[i%2]
		own += fmt.Sprintf("  - {task: earlier, run: %d, human: %s, judge: %s}\n", i, verdict, verdict)
	}
	c.write(map[string]string{"family/family.yaml": "calibration: labels.yaml\n", "family/labels.yaml": own})
	c.want(0, with(run, "--output", "again")...)
	c.want(0, "report", "--input", "again", "--format", "markdown")
	c.contains(c.stdout, "pass rate corrected for the judge's errors", "passes 40 of 40 good runs")
	if _, err := os.Stat(filepath.Join(c.dir, "again", experiment.LabelsFile)); err != nil {
		t.Error(err)
	}
	c.write(map[string]string{"family/labels.yaml": "labels: none\n"})
	c.want(2, with(run, "--output", "never")...)
	c.contains(c.stderr, "labels.yaml:1:")
}

// An experiment that is decided stops, says so, and does not go on when the command is repeated.
func TestStoppingEarlyFromTheCommandLine(t *testing.T) {
	c := newCommand(t)
	tinyFamily(t, filepath.Join(c.dir, "family"), 30)
	url := c.model(`{"scenarios":[{"name":"good","when":{"system":"Do it well."},"turns":[{"calls":[{"write":"answer.txt","content":"42\n"}]},{"text":"done"}]}],"turns":[{"text":"no"}]}`)
	arm := "agent:builtin,model:claude-sonnet-4-5,modelUrl:" + url
	run := []string{
		"run", "--family", "family", "--runs", "1", "--output", "out", "--stop-early", "--format", "text",
		"--no-probe", "--concurrency", "1", "--arm", "before=" + arm, "--arm", "after=" + arm + ",prompt:Do it well.",
	}
	for range 2 {
		c.want(0, run...)
		c.contains(c.stdout, "Improved", "e-process", "stopped by rule after 10 of 30 tasks", "sequential analysis")
		c.contains(c.stderr, "stopped by rule")
		if strings.Contains(c.stdout, "missing") {
			t.Errorf("what the rule spares is missing:\n%s", c.stdout)
		}
	}
	c.contains(c.stderr, "0 to do")
	c.want(0, "compare", "out", "--format", "json")
	c.contains(c.stdout, `"method": "e-process"`, `"sequential": true`)
	c.want(2, with(run, "--shard", "1/2", "--output", "shard")...)
	c.contains(c.stderr, "--shard")
}

func TestChangedArtefactsAreFound(t *testing.T) {
	c, run := tiny(t, 1)
	c.want(0, with(run, "--runs", "1")...)
	c.want(0, "list", "out", "--verify")
	c.contains(c.stdout, "files match the record")
	c.write(map[string]string{"out/runs/t000/default/0/1/agent.ndjson.zst": "forged"})
	c.want(1, "list", "out", "--verify")
	c.contains(c.stdout, "agent.ndjson.zst")
}
