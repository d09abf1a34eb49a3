package calls

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/fit-eval/fit/price"
)

// The outcomes of a call.
const (
	OK           = "ok"
	Failed       = "error"        // the model's service answered with an error, or not at all
	Cut          = "cut"          // the stream ended before the reply was complete
	Disconnected = "disconnected" // the agent did not wait for the end
	Budget       = "budget"       // refused, or stopped, because the money or the turns are used up
	Fault        = "fault"        // spoiled on purpose
	Replayed     = "replayed"     // answered from a record
)

// Call is one request to a model and its outcome.
type Call struct {
	Seq int64 `json:"seq"` // counts the calls of a participant from 1
	// ID is the service's own id of the reply, where it has one.
	ID          string `json:"id,omitempty"`
	Participant string `json:"participant,omitempty"`
	Cell        string `json:"cell,omitempty"`
	Protocol    string `json:"protocol"` // anthropic, responses, chat
	Path        string `json:"path"`     // as in /v1/messages
	Model       string `json:"model,omitempty"`
	// Served is the model that the reply names, which may be another one.
	Served  string `json:"served,omitempty"`
	Stream  bool   `json:"stream,omitempty"`
	Status  int    `json:"status"` // as the agent saw it; 0 is none
	Error   string `json:"error,omitempty"`
	Outcome string `json:"outcome"`
	// Retry is how often the same request was made before, in a row.
	Retry int `json:"retry,omitempty"`
	// StartMs is in epoch milliseconds. FirstByteMs and EndMs are milliseconds after it by the
	// monotonic clock; FirstByteMs is 0 if nothing came.
	StartMs     int64 `json:"startMs"`
	FirstByteMs int64 `json:"firstByteMs,omitempty"`
	EndMs       int64 `json:"endMs"`
	// Usage is the token usage that the service reported; nil if it said nothing.
	Usage *UsageJSON `json:"usage,omitempty"`
	// Implausible names a count of tokens in the reply that cannot be, or that the request did not
	// allow. Where it leaves nothing to rely on, Usage is nil.
	Implausible string `json:"implausible,omitempty"`
	// CostUSD is nil if the price is unknown, which is not zero.
	CostUSD *float64 `json:"costUsd,omitempty"`
	// OriginalUSD is what a call that was answered from a record cost when it was recorded.
	OriginalUSD *float64 `json:"originalUsd,omitempty"`
	// Differs says where such a call differs from the recorded one in what a model would read.
	Differs string `json:"differs,omitempty"`
	// Tools and Messages are how many tools the request offers and how long its conversation is.
	Tools    int `json:"tools,omitempty"`
	Messages int `json:"messages,omitempty"`
	// ServerTools are the tools of the request that run at the vendor, such as a search of the web.
	ServerTools []string `json:"serverTools,omitempty"`
	// ToolsDenied says that they were taken out before the request was passed on.
	ToolsDenied bool `json:"toolsDenied,omitempty"`
	// Session counts the sessions that were recorded in one file, from 0.
	Session int `json:"session,omitempty"`
	// Request and Response say where the bodies are. A Writer fills them in.
	Request  *Body `json:"request,omitempty"`
	Response *Body `json:"response,omitempty"`
}

// UsageJSON is a token usage in the spelling of records.
type UsageJSON struct{ price.TokenUsage }

type storedUsage struct {
	Input        int64 `json:"input"`
	Output       int64 `json:"output"`
	CacheRead    int64 `json:"cacheRead,omitempty"`
	CacheWrite5m int64 `json:"cacheWrite5m,omitempty"` // kept for five minutes
	CacheWrite1h int64 `json:"cacheWrite1h,omitempty"` // kept for an hour
	Reasoning    int64 `json:"reasoning,omitempty"`
	// Partial says that the reply is incomplete: Output was counted from the part that arrived.
	Partial bool `json:"partial,omitempty"`
}

// MarshalJSON writes the usage as a record has it.
func (u UsageJSON) MarshalJSON() ([]byte, error) {
	return json.Marshal(storedUsage{
		u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens - u.CacheWriteLongTokens,
		u.CacheWriteLongTokens, u.ReasoningTokens, u.Partial,
	})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (u *UsageJSON) UnmarshalJSON(raw []byte) error {
	var stored storedUsage
	err := json.Unmarshal(raw, &stored)
	u.TokenUsage = price.TokenUsage{
		InputTokens:          stored.Input,
		OutputTokens:         stored.Output,
		CacheReadTokens:      stored.CacheRead,
		CacheWriteTokens:     stored.CacheWrite5m + stored.CacheWrite1h,
		CacheWriteLongTokens: stored.CacheWrite1h,
		ReasoningTokens:      stored.Reasoning,
		Partial:              stored.Partial,
	}
	return err
}

// Body says where the body of a request or a response is.
type Body struct {
	// Bytes is its length as it was sent.
	Bytes int64 `json:"bytes"`
	// Stream says that a response is a stream of events.
	Stream bool `json:"stream,omitempty"`
	// Chunks are the chunks it consists of; empty if the body was not kept.
	Chunks Ranges `json:"chunks,omitempty"`
	// Omitted says why it was not kept.
	Omitted string `json:"omitted,omitempty"`
}

// Place describes where a participant works.
type Place struct {
	Participant string `json:"participant"`
	// Dirs are directories that differ from run to run, by purpose: cwd, home.
	Dirs map[string]string `json:"dirs"`
}

// Extension ends the names of records.
const Extension = ".calls"

// Path returns the path of the record of a trace, which is beside it: agent.calls for agent.ndjson
// and agent.ndjson.zst.
func Path(trace string) string {
	dir, name := filepath.Split(trace)
	for _, ending := range []string{".zst", ".gz", ".ndjson", ".jsonl", ".json"} {
		if cut, ok := strings.CutSuffix(name, ending); ok && cut != "" {
			name = cut
		}
	}
	return dir + name + Extension
}
