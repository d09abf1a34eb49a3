package session

import "github.com/fit-eval/fit/price"

// ListPrices computes costs from a price table.
func ListPrices(table price.Table) Prices {
	return func(model string, usage TokenUsage, atMs int64) (float64, bool) {
		cost := table.Cost(model, atMs, usage)
		if cost == nil {
			return 0, false
		}
		return *cost, true
	}
}
