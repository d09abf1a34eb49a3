// Package wire knows four model protocols byte for byte, and nothing else: Anthropic Messages,
// OpenAI Responses, OpenAI Chat Completions and Google's generateContent.
//
// Each protocol has one file with the same parts, so that a client, a server and a proxy can share
// it:
//
//   - the Protocol: its addresses, keys, paths, errors and reports of usage,
//   - a request type, such as AnthropicRequest,
//   - a reply type, such as AnthropicMessage,
//   - a function that cuts a whole reply into the events of a stream, such as AnthropicEvents,
//   - an accumulator that puts the events of a stream together again, such as AnthropicAccumulator.
//
// Cutting a reply and accumulating the pieces gives the reply back; tests hold the package to that.
// Decoding is lenient about what it does not know (new block types, new events, extra fields) and
// strict about what it does. Events come from a network, so nothing here trusts an index, an order
// or a size.
package wire
