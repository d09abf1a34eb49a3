package ledger

// Spending is the total cost of attempts. Attempts that ended in errors count: they were paid for.
type Spending struct {
	// CostUSD is nil where the cost of some attempt is unknown; KnownCostUSD adds up the known
	// ones.
	CostUSD      *float64
	KnownCostUSD float64
	Tokens       UsageJSON
}

// SpendingOf adds up what the records cost.
func SpendingOf(records []Record) Spending {
	var s Spending
	known := true
	for i := range records {
		r := &records[i]
		if r.CostUSD != nil {
			s.KnownCostUSD += *r.CostUSD
		} else if r.Tokens.Total() > 0 || r.Verdict != Error || r.Imported != nil {
			known = false // an error of ours before the first token is free
		}
		s.Tokens.Add(r.Tokens)
	}
	if known {
		cost := s.KnownCostUSD
		s.CostUSD = &cost
	}
	return s
}
