// Package wire knows four model protocols byte for byte, and nothing else: Anthropic Messages,
// OpenAI Responses, OpenAI Chat Completions and Google's generateContent.
//
// Each protocol has one file with the same parts, so that a client, a server and a proxy can share
// it:
//
//   - the Protocol: its addresses, keys, paths, errors and reports of usage,
//   - a request type, such as AnthropicRequest,
//   - a reply type, such as AnthropicMessage,
//   - a function that cuts a whole reply into the events of a stream, such as AnthropicEvents.
//
// Decoding is lenient about what it does not know (new block types, extra fields) and strict about
// what it does.
package wire
