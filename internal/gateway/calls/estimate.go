package calls

// BytesPerToken is about how many bytes a token has: code and JSON have 3 to 5.
const BytesPerToken = 4

// EstimateTokens estimates how many tokens a text of a length has.
func EstimateTokens(bytes int) int { return (bytes + BytesPerToken - 1) / BytesPerToken }
