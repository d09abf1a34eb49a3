package stats

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/testenv"
)

// largeSuite is the size of the speed requirement: 500 tasks with 5 runs each.
func largeSuite() [][]float64 {
	random := rand.New(rand.NewPCG(1, 1))
	tasks := make([][]float64, 500)
	for i := range tasks {
		tasks[i] = runsOf(random, random.Float64(), 5)
	}
	return tasks
}

func BenchmarkBootstrapClustered(b *testing.B) {
	tasks := largeSuite()
	for name, config := range map[string]bootstrapConfig{
		"tasks": {Replicates: 10_000}, "tasks and runs": {Replicates: 10_000, Hierarchical: true},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := bootstrapClustered(tasks, config); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestBootstrapOfALargeSuiteTakesLessThanASecond(t *testing.T) {
	testenv.Measurement(t, "bench-stats")
	// The fastest of a few tries: other tests and other people share the cores.
	fastest := time.Hour
	for range 5 {
		start := time.Now()
		must[Interval](t)(bootstrapClustered(largeSuite(), bootstrapConfig{Replicates: 10_000, Hierarchical: true}))
		fastest = min(fastest, time.Since(start))
	}
	t.Logf("10,000 replicates of 500 tasks × 5 runs: %v", fastest)
	if fastest >= time.Second {
		t.Errorf("10,000 replicates of 500 tasks × 5 runs took %v, want under a second", fastest)
	}
}

func TestBootstrapDoesNotDependOnTheNumberOfWorkers(t *testing.T) {
	tasks := largeSuite()[:40]
	for _, method := range []string{MethodBCa, MethodPercentile} {
		for _, hierarchical := range []bool{false, true} {
			config := bootstrapConfig{Replicates: 1000, Seed: 7, Method: method, Hierarchical: hierarchical, Workers: 1}
			one := must[Interval](t)(bootstrapClustered(tasks, config))
			config.Workers = 8
			eight := must[Interval](t)(bootstrapClustered(tasks, config))
			if one.Lo != eight.Lo || one.Hi != eight.Hi {
				t.Errorf("one worker gives [%v, %v], eight give [%v, %v]", one.Lo, one.Hi, eight.Lo, eight.Hi)
			}
			config.Seed = 8
			if other := must[Interval](t)(bootstrapClustered(tasks, config)); other.SE == one.SE {
				t.Error("another seed gives the same replicates")
			}
		}
	}
}
