// Package calls is the record of model calls: what was asked, what was answered, when, and at what
// cost.
package calls

// The outcomes of a call.
const (
	OK           = "ok"
	Failed       = "error"        // the endpoint answered with an error, or could not be reached
	Cut          = "cut"          // the reply ended before it was complete
	Disconnected = "disconnected" // the agent did not wait for the end
	Budget       = "budget"       // refused or stopped, because a limit was reached
	Fault        = "fault"        // made on purpose
	Replayed     = "replayed"     // answered from a record
)

// Usage counts the tokens of a call. The figures do not overlap, except that Reasoning is part of
// Output.
type Usage struct {
	Input        int64 `json:"input"`
	Output       int64 `json:"output"`
	CacheRead    int64 `json:"cacheRead,omitempty"`
	CacheWrite5m int64 `json:"cacheWrite5m,omitempty"`
	CacheWrite1h int64 `json:"cacheWrite1h,omitempty"`
	Reasoning    int64 `json:"reasoning,omitempty"`
}

// Call is one request to a model and what became of it.
type Call struct {
	Seq         int64  `json:"seq"`          // counts the calls of a participant from 1
	ID          string `json:"id,omitempty"` // the endpoint's id of the request
	Participant string `json:"participant"`
	Cell        string `json:"cell,omitempty"`
	Protocol    string `json:"protocol"` // anthropic, responses, chat
	Path        string `json:"path"`     // as in /v1/messages
	Model       string `json:"model,omitempty"`
	Stream      bool   `json:"stream,omitempty"`
	Status      int    `json:"status"` // as the agent saw it; 0: none
	Error       string `json:"error,omitempty"`
	Outcome     string `json:"outcome"`
	Retry       int    `json:"retry,omitempty"` // how often the same request was made before, in a row
	StartMs     int64  `json:"startMs"`
	FirstByteMs int64  `json:"firstByteMs,omitempty"` // after the start
	EndMs       int64  `json:"endMs"`                 // after the start
	// Usage is what the endpoint said; nil: nothing.
	Usage   *Usage   `json:"usage,omitempty"`
	CostUSD *float64 `json:"costUsd,omitempty"` // nil is unknown, which is not zero
	// ServerTools are the tools of the request that run at the vendor, such as a search of the web.
	ServerTools []string `json:"serverTools,omitempty"`
	// ToolsDenied says that they were taken out before the request was passed on.
	ToolsDenied bool `json:"toolsDenied,omitempty"`
}
