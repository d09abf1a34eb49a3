package versus_test

import (
	"testing"

	"github.com/fit-eval/fit/internal/report/versus/versustest"
)

// BenchmarkReport builds the report of a directory with 100 cells and 1,500 replies, its evidence
// cached.
func BenchmarkReport(b *testing.B) {
	d := three()
	d.Arms = d.Arms[:2]
	d.Arms[1].Does = versustest.Mistakes
	d.Tasks, d.Runs, d.Distinct = 10, 5, true
	dir := written(b, d)
	if err := versustest.Judge(b.Context(), dir, options(), 3); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		robot(b, build(b, dir, options()))
	}
}
