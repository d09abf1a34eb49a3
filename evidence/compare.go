package evidence

// Comparison sets two attempts side by side. Deltas are B's value minus A's.
type Comparison struct {
	Milestones []MilestoneDelta `json:"milestones"`
	// OrderA and OrderB are the milestones that each reached, in order, such as
	// read<search<edit<test.
	OrderA string `json:"orderA"`
	OrderB string `json:"orderB"`
	// Discordant is the Kendall distance of the two orders: how many of the Pairs of milestones that
	// both reached at different times came in the opposite order.
	Discordant int              `json:"discordant"`
	Pairs      int              `json:"pairs"`
	Efficiency []EfficiencyPair `json:"efficiency"`
	Prompts    PromptComparison `json:"prompts"`
}

// MilestoneDelta compares when two attempts reached a milestone. A milestone that one did not reach
// is censored: its delta is not known, and never 0.
type MilestoneDelta struct {
	Kind string `json:"kind"`
	// A and B are reached, unreached, or unseen: it happened, and the trace does not show when.
	A              string `json:"a"`
	B              string `json:"b"`
	ElapsedA       *int64 `json:"elapsedA"`
	ElapsedB       *int64 `json:"elapsedB"`
	DeltaElapsedMs *int64 `json:"deltaElapsedMs"`
	DeltaTurn      *int   `json:"deltaTurn"`
}

// Whether a milestone was reached.
const (
	Reached   = "reached"
	Unreached = "unreached"
	Unseen    = "unseen"
)

// EfficiencyPair is one figure of two attempts; nil is not known.
type EfficiencyPair struct {
	Name string   `json:"name"`
	A    *float64 `json:"a"`
	B    *float64 `json:"b"`
	// LogRatio is ln(B/A), where both are positive.
	LogRatio *float64 `json:"logRatio"`
}

// PromptComparison compares the system prompts of two attempts by label and line.
type PromptComparison struct {
	// A and B are captured or not captured.
	A      string       `json:"a"`
	B      string       `json:"b"`
	Labels []PromptDiff `json:"labels"`
	// PrefixA and PrefixB are the SHA-256 of everything that stands before the conversation. Where
	// they are equal, a provider's cache can serve both.
	PrefixA string `json:"prefixA,omitempty"`
	PrefixB string `json:"prefixB,omitempty"`
}

// Whether system prompts were captured.
const (
	PromptsCaptured    = "captured"
	PromptsNotCaptured = "not captured"
)

// PromptDiff compares the texts of one label.
type PromptDiff struct {
	Label   string `json:"label"`
	Status  string `json:"status"` // same, different, only-a, only-b
	BytesA  int    `json:"bytesA"`
	BytesB  int    `json:"bytesB"`
	Added   int    `json:"added"`   // lines that only B has
	Removed int    `json:"removed"` // lines that only A has
	// Lines are the changed lines, with + or - in front, as far as there is room.
	Lines []string `json:"lines,omitempty"`
}

// Compare sets two attempts side by side.
func Compare(a, b *Run) Comparison { return Comparison{} }
