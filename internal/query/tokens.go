package query

import (
	"strconv"

	"github.com/fit-eval/fit/session"
)

// UsageJSON is a token usage in the spelling that this tool prints.
type UsageJSON struct {
	InputTokens          int64    `json:"inputTokens"`
	OutputTokens         int64    `json:"outputTokens"`
	CacheReadTokens      int64    `json:"cacheReadInputTokens"`
	CacheWriteTokens     int64    `json:"cacheCreationInputTokens"`
	CacheWriteLongTokens int64    `json:"-"`
	ReasoningTokens      int64    `json:"-"`
	TotalTokens          int64    `json:"-"`
	CostUSD              *float64 `json:"-"`
	CostSource           string   `json:"-"`
	Partial              bool     `json:"-"`
	Summed               bool     `json:"-"`
}

// appendCounters writes the counters as members of an object.
func appendCounters(dst []byte, u session.TokenUsage) []byte {
	dst = strconv.AppendInt(append(dst, `"inputTokens":`...), u.InputTokens, 10)
	dst = strconv.AppendInt(append(dst, `,"outputTokens":`...), u.OutputTokens, 10)
	dst = strconv.AppendInt(append(dst, `,"cacheReadInputTokens":`...), u.CacheReadTokens, 10)
	return strconv.AppendInt(append(dst, `,"cacheCreationInputTokens":`...), u.CacheWriteTokens, 10)
}
