package price

// TokenUsage counts the tokens that were consumed, and what they cost. InputTokens are the uncached
// ones. The figures do not overlap, except that CacheWriteLongTokens are part of CacheWriteTokens
// and ReasoningTokens of OutputTokens.
//
// The JSON is that of sessions. Formats that spell it otherwise declare a struct with the same
// fields and other tags; Go converts one into the other.
type TokenUsage struct {
	InputTokens      int64 `json:"inputTokens"`
	OutputTokens     int64 `json:"outputTokens"`
	CacheReadTokens  int64 `json:"cacheReadTokens"`
	CacheWriteTokens int64 `json:"cacheWriteTokens"`
	// CacheWriteLongTokens are kept for an hour, which costs more; most agents do not report them.
	CacheWriteLongTokens int64 `json:"cacheWriteLongTokens,omitempty"`
	ReasoningTokens      int64 `json:"-"`
	// TotalTokens is the sum that a session reports; Total computes it.
	TotalTokens int64    `json:"totalTokens"`
	CostUSD     *float64 `json:"costUsd"` // nil is unknown, which is not zero
	CostSource  string   `json:"costSource"`
	// Partial says that the stream was cut off before it reported the final figures; the counts are
	// a lower bound.
	Partial bool `json:"partial,omitempty"`
	// Summed says that the figures may be those of several calls, so that nobody knows how long the
	// prompt of each was.
	Summed bool `json:"-"`
}

// Where a cost comes from.
const (
	CostReported = "reported" // the agent's own figure
	CostComputed = "computed" // tokens times the price table
	// CostEstimated is computed from provisional counts of tokens, because the agent ended before
	// it reported the final ones. The real cost is at least about this.
	CostEstimated = "estimated"
	// CostWire is computed from the tokens that the gateway saw the model's service report.
	CostWire    = "wire"
	CostUnknown = "unknown"
)

// Prompt returns the tokens that the model read, cached ones included.
func (u TokenUsage) Prompt() int64 { return u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens }

// Total returns the sum of all tokens.
func (u TokenUsage) Total() int64 { return u.Prompt() + u.OutputTokens }

// Add adds the counts of another usage, and nothing else of it.
func (u *TokenUsage) Add(v TokenUsage) {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.CacheReadTokens += v.CacheReadTokens
	u.CacheWriteTokens += v.CacheWriteTokens
	u.CacheWriteLongTokens += v.CacheWriteLongTokens
	u.ReasoningTokens += v.ReasoningTokens
	u.TotalTokens += v.TotalTokens
}

// Max returns the larger of each count: the pieces of a streamed message repeat its usage, and
// later ones may know more.
func (u TokenUsage) Max(v TokenUsage) TokenUsage {
	u.InputTokens = max(u.InputTokens, v.InputTokens)
	u.OutputTokens = max(u.OutputTokens, v.OutputTokens)
	u.CacheReadTokens = max(u.CacheReadTokens, v.CacheReadTokens)
	u.CacheWriteTokens = max(u.CacheWriteTokens, v.CacheWriteTokens)
	u.CacheWriteLongTokens = max(u.CacheWriteLongTokens, v.CacheWriteLongTokens)
	u.ReasoningTokens = max(u.ReasoningTokens, v.ReasoningTokens)
	return u
}

// Since returns what was consumed between two totals of one stream. A total whose cost is known
// after one whose cost is not keeps its own.
func (u TokenUsage) Since(before TokenUsage) TokenUsage {
	u.InputTokens -= before.InputTokens
	u.OutputTokens -= before.OutputTokens
	u.CacheReadTokens -= before.CacheReadTokens
	u.CacheWriteTokens -= before.CacheWriteTokens
	u.CacheWriteLongTokens -= before.CacheWriteLongTokens
	u.ReasoningTokens -= before.ReasoningTokens
	u.TotalTokens -= before.TotalTokens
	if u.CostUSD != nil && before.CostUSD != nil {
		u.CostUSD = new(*u.CostUSD - *before.CostUSD)
	}
	return u
}

// Plus returns what two runs consumed together. The cost is unknown if that of either is, and of
// the less certain of the two kinds.
func (u TokenUsage) Plus(v TokenUsage) TokenUsage {
	switch {
	case v == TokenUsage{}:
		return u
	case u == TokenUsage{}:
		return v
	}
	sum := u
	sum.Add(v)
	sum.TotalTokens, sum.Partial = sum.Total(), u.Partial || v.Partial
	if sum.CostUSD, sum.CostSource = nil, CostUnknown; u.CostUSD == nil || v.CostUSD == nil {
		return sum
	}
	sum.CostUSD, sum.CostSource = new(*u.CostUSD+*v.CostUSD), CostReported
	if u.CostSource == CostWire && v.CostSource == CostWire {
		sum.CostSource = CostWire
	}
	for _, source := range []string{CostComputed, CostEstimated} {
		if u.CostSource == source || v.CostSource == source {
			sum.CostSource = source
		}
	}
	return sum
}
