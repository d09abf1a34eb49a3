package inspectlog

import "github.com/fit-eval/fit/session"

// usage is what a sample says of the tokens of a model.
type usage struct {
	Input      int64    `json:"input_tokens"`
	Output     int64    `json:"output_tokens"`
	CacheRead  int64    `json:"input_tokens_cache_read"`
	CacheWrite int64    `json:"input_tokens_cache_write"`
	Total      int64    `json:"total_tokens"`
	Cost       *float64 `json:"total_cost"`
}

// Tokens returns what a model has used.
func (u *usage) Tokens() session.TokenUsage {
	return Tokens(u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Total)
}

// Tokens returns what a model has used. Older versions count what was cached as input too, for some
// providers: then the total is that of input and output.
func Tokens(input, output, cacheRead, cacheWrite, total int64) session.TokenUsage {
	if cached := cacheRead + cacheWrite; cached > 0 && total == input+output && cached <= input {
		input -= cached
	}
	return session.TokenUsage{
		InputTokens:      input,
		OutputTokens:     output,
		CacheReadTokens:  cacheRead,
		CacheWriteTokens: cacheWrite,
	}
}
