package grade

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// FlakyCheck is a check that does not always give the same result for the same files.
type FlakyCheck struct {
	Source string `json:"source"` // invariants or tests
	Name   string `json:"name"`
	Passes int    `json:"passes"`
	Runs   int    `json:"runs"`
}

// Repeat grades the same thing several times and returns the checks that were not decided equally
// every time, sorted. A check that is missing in a run has not passed in it.
func Repeat(ctx context.Context, cfg Config, times int) ([]FlakyCheck, error) {
	if times < 2 {
		return nil, fmt.Errorf("grade %d times: at least two are needed to compare", times)
	}
	type key struct{ source, name string }
	passes := map[key]int{}
	for range times {
		result, err := Run(ctx, cfg)
		if err != nil {
			return nil, err
		}
		all := map[key]bool{}
		note := func(source string, row Row) {
			if row.Role == Diagnostic {
				return
			}
			k := key{source, row.Name}
			before, seen := all[k]
			all[k] = row.Pass && (!seen || before)
		}
		for _, raw := range result.Invariants.Details {
			note(sourceInvariants, Classify(raw))
		}
		if result.HiddenTests != nil {
			for _, raw := range result.HiddenTests.Details {
				note(sourceTests, Classify(raw))
			}
		}
		for k, pass := range all {
			passes[k] += 0
			if pass {
				passes[k]++
			}
		}
	}
	var flaky []FlakyCheck
	for k, n := range passes {
		if n > 0 && n < times {
			flaky = append(flaky, FlakyCheck{
				Source: k.source,
				Name:   k.name,
				Passes: n,
				Runs:   times,
			})
		}
	}
	slices.SortFunc(flaky, func(a, b FlakyCheck) int {
		return cmp.Or(strings.Compare(a.Source, b.Source), strings.Compare(a.Name, b.Name))
	})
	return flaky, nil
}
