package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/ledger"
)

// TestASkillThatLeaksOnAWorkerWithholdsTheClaim: a worker knows what the other arms bring, finds it
// in the calls of an arm that should not have it, and the report names it and claims nothing.
func TestASkillThatLeaksOnAWorkerWithholdsTheClaim(t *testing.T) {
	w := newWorld(t)
	w.family(2)
	description := "How an answer is worded, by the rules of zebrafinch."
	for name, content := range map[string]string{
		"answers/SKILL.md": "---\nname: answers\ndescription: " + description + "\n---\nThe answer is 42.\n",
		"family/tasks/t01/agent.task.md": "Write the answer to answer.txt. These skills help:\n\n- answers: " + description +
			"\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(w.dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
	m := &machine{name: "w1", tmp: filepath.Join(w.dir, "w1")}
	w.serveModel(m)
	w.serveHub(testenv.FreePort(t), 30*time.Second)
	w.work(m)
	arm := "agent:builtin,model:claude-sonnet-4-5,modelUrl:http://127.0.0.1:" + w.model
	coordinator := w.start(nil, nil, "benchmark", "run", "--family", "family", "--runs", "1", "--output", "results",
		"--no-probe", "--arm", "before="+arm, "--arm", "after="+arm+",skills:answers", "--fleet", w.url)
	<-coordinator.over
	records, _ := w.counted("results")
	if len(records) != 4 {
		t.Fatalf("%d cells count", len(records))
	}
	for _, r := range records {
		found := ""
		for _, piece := range r.Treatment.Pieces {
			if piece.Kind == ledger.PieceSkill && piece.Given == ledger.GivenWhole {
				found = piece.From
			}
		}
		want := map[string]string{"t00/before": "", "t01/before": ledger.FromOther}
		if from, ok := want[r.TaskID+"/"+r.Arm]; !ok && found != ledger.FromArm || ok && found != from {
			t.Errorf("%s on %q was given the skill from %q", r.Key(), r.Worker, found)
		}
		if r.Worker != "w1" {
			t.Errorf("%s ran on %q", r.Key(), r.Worker)
		}
	}
	compare := w.start(nil, nil, "benchmark", "compare", "results")
	<-compare.over
	want := "no claim because: before was given the skill answers in 1 of 2 runs, although only after brings it"
	if said := compare.out.String(); !strings.Contains(said, want) {
		t.Errorf("want %q:\n%s", want, said)
	}
}
