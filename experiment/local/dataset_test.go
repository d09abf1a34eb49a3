package local

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/agent/builtin"
	"github.com/fit-eval/fit/experiment"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/task"
)

// repeats says the word that it was asked to repeat, in one reply.
const repeats = `{"captures":[{"var":"word","from":"prompt","regex":"word (\\w+)"}],"turns":[{"text":"You said ${word}."}]}`

func loadDataset(t testing.TB, settings, samples string) *task.Family {
	t.Helper()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"family.yaml": "dataset: samples.csv\n" + settings, "samples.csv": samples})
	family, err := task.Load(t.Context(), dir, task.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return family
}

func wordSamples(n int) string {
	var samples strings.Builder
	samples.WriteString("id,word\n")
	for i := range n {
		fmt.Fprintf(&samples, "s%d,w%d\n", i, i)
	}
	return samples.String()
}

func modelMachine() *Machine {
	machine := testMachine()
	machine.Registry = agent.NewRegistry(builtin.New(), builtin.NewModel())
	return machine
}

// BenchmarkSamples is how many samples a model without tools answers in a second.
func BenchmarkSamples(b *testing.B) {
	family := loadDataset(b, "prompt: Repeat the word {{word}}\ngrade: [{equals: 'You said {{word}}.'}]\n",
		wordSamples(b.N))
	tr := preparedOn(b, modelMachine(), family, experiment.Setup{Arms: []experiment.Arm{{
		Name:     "model",
		Agent:    "model",
		Model:    "claude-sonnet-4-5",
		ModelURL: serveScript(b, repeats),
	}}})
	dir, executor := tr.open(b, b.TempDir())
	b.ResetTimer()
	outcome, err := experiment.Run(b.Context(), dir, experiment.Config{Executor: executor, Concurrency: 4})
	if err != nil || outcome.Progress.Passed != b.N {
		b.Fatalf("%+v %v", outcome, err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "samples/s")
}

func TestSamplesAreAnsweredAndChecked(t *testing.T) {
	t.Parallel()
	family := loadDataset(t, `prompt: Repeat the word {{word}}
threshold: 0.5
grade:
  - equals: You said {{want}}.
  - maxToolCalls: 0
    gate: true
  - usedTool: Bash
    not: true
    gate: true
  - trace: "[?type=='assistant']"
    gate: true
  - contains: [said]
    weight: 0.5
  - command: [sh, -c, 'grep -q "You said w0" && echo "{\"test\":\"script\",\"pass\":true}" || echo "{\"test\":\"script\",\"pass\":false}"']
`, "id,word,want\na,w0,w0\nb,w1,w0\n")
	tr := preparedOn(t, modelMachine(), family, experiment.Setup{Arms: []experiment.Arm{{
		Name:     "model",
		Agent:    "model",
		Model:    "claude-sonnet-4-5",
		ModelURL: serveScript(t, repeats),
	}}})
	path, _, records := execute(t, tr, 2)
	want := map[string]string{"a": ledger.Pass, "b": ledger.Fail}
	for _, r := range records {
		if r.Verdict != want[r.TaskID] || len(r.HiddenTests.Details) != 6 {
			t.Errorf("%s: %s %s %s", r.TaskID, r.Verdict, r.ErrorMessage, r.HiddenTests.Details)
		}
		stored, err := StoredAnswer(path, &r, tr.machine.Registry.Dialects())
		if err != nil || stored.Text != r.Submission || stored.Turns != 1 {
			t.Errorf("%s: %+v %v", r.TaskID, stored, err)
		}
		for _, check := range family.Tasks[0].Sample.Checks[1:4] { // they read the packed trace
			if holds, why, err := stored.Trace(check); err != nil || holds == check.Not {
				t.Errorf("%s: %v %s %v", check.Name, holds, why, err)
			}
		}
	}
	if len(records) != 2 || *records[0].Score == *records[1].Score {
		t.Errorf("%d records", len(records))
	}
}
