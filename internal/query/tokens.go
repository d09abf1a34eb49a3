package query

import "strconv"

// Tokens are the four counters of a usage report, in the spelling that this tool prints.
type Tokens struct {
	Input         int64 `json:"inputTokens"`
	Output        int64 `json:"outputTokens"`
	CacheRead     int64 `json:"cacheReadInputTokens"`
	CacheCreation int64 `json:"cacheCreationInputTokens"`
}

// Plus returns the sum of two reports.
func (t Tokens) Plus(u Tokens) Tokens {
	return Tokens{t.Input + u.Input, t.Output + u.Output, t.CacheRead + u.CacheRead, t.CacheCreation + u.CacheCreation}
}

// Max returns the larger of each counter: the pieces of a streamed message repeat its usage, and
// later ones may know more.
func (t Tokens) Max(u Tokens) Tokens {
	return Tokens{
		max(t.Input, u.Input), max(t.Output, u.Output), max(t.CacheRead, u.CacheRead),
		max(t.CacheCreation, u.CacheCreation),
	}
}

// Total returns the sum of the four counters.
func (t Tokens) Total() int64 { return t.Input + t.Output + t.CacheRead + t.CacheCreation }

// appendCounters writes the four counters as members of an object.
func (t Tokens) appendCounters(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `"inputTokens":`...), t.Input, 10)
	dst = strconv.AppendInt(append(dst, `,"outputTokens":`...), t.Output, 10)
	dst = strconv.AppendInt(append(dst, `,"cacheReadInputTokens":`...), t.CacheRead, 10)
	return strconv.AppendInt(append(dst, `,"cacheCreationInputTokens":`...), t.CacheCreation, 10)
}
