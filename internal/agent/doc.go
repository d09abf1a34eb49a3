// Package agent defines the one interface of all agents: a prompt goes in, raw events come out as
// they happen, and a result ends it.
//
// An agent has two halves that never meet. The process half starts it, hands over the prompt,
// passes on every line it prints, and interprets no more than it must: the session id, and how it
// ended. The decoding half (its session dialects) turns those lines into canonical events, and
// works on files as well as on live streams.
//
// To add an agent: make a folder that exports New() returning an Agent, and add one line to the
// catalog. Nothing else in the product knows agents by name.
package agent
