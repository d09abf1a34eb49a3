package evidence

// ErrorAttribution says why an attempt is unresolved.
type ErrorAttribution struct {
	Category   string   `json:"category"`
	Tier       string   `json:"tier"`
	Method     string   `json:"method"` // heuristic, llm
	Confidence float64  `json:"confidence"`
	Evidence   []string `json:"evidence"`
	// Tags are further things that went wrong.
	Tags []string `json:"tags"`
}

// The tiers of causes. An environmental cause says nothing about the agent.
const (
	tierEnvironmental = "environmental"
	tierResource      = "resource"
	tierCapability    = "capability"
)

// How an attribution was made.
const (
	MethodHeuristic = "heuristic"
	MethodLLM       = "llm"
)

// The nine categories, in the order in which they are tried.
const (
	causeProviderError    = "provider_error"
	CauseHarnessError     = "harness_error"
	CauseTimeout          = "timeout"
	causeContextExhausted = "context_exhausted"
	CauseBudgetOrLoop     = "budget_or_loop"
	CauseNoChange         = "no_change"
	causeRegression       = "regression"
	CauseIncompleteFix    = "incomplete_fix"
	CauseWrongFix         = "wrong_fix"
)

// Rerankable reports whether a model may replace the category by another one for which Rerankable
// holds: the last three, which need an understanding of the change.
func Rerankable(category string) bool {
	return isOneOf(category, causeRegression, CauseIncompleteFix, CauseWrongFix)
}
