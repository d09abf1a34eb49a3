package local

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/agent/builtin"
	"github.com/fit-eval/fit/experiment"
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

