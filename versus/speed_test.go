package versus

import (
	"math/rand/v2"
	"testing"

	"github.com/fit-eval/fit/evidence"
)

func BenchmarkBuild(b *testing.B) {
	random := rand.New(rand.NewPCG(15, 5))
	arms := []string{"a", "b", "c"}
	judges := map[string][2]float64{"a": {.9, .85}, "b": {.9, .85}, "c": {.9, .85}}
	m := draw(random, 20, 3, arms, judges)
	m.known = map[string]calibration{evidence.Correctness: calibrate(b, random, 40, arms, judges)}
	for b.Loop() {
		m.report(b)
	}
}
