// Package session is the canonical view of what an agent did: the same events, tool names,
// milestones, token counts and costs, whichever agent produced them.
//
// Data flows in three steps:
//
//  1. A Dialect recognises a native stream and makes a Decoder for it. Dialects belong to the
//     agents; the one dialect that several agents speak, the stream of system/assistant/user/result
//     objects, lives here (StreamDialect).
//  2. The Decoder takes one native event at a time and reports what it means to a Fold: a message,
//     a tool call, a result, usage, an error.
//  3. The Fold numbers the events, counts turns, refines shell commands into reads, searches and
//     tests, notices milestones, adds up usage by each dialect's own rule, and in the end gives an
//     EnrichedSession.
//
// Everything here is a pure function of bytes: it works the same on a live stream, on a trace, and
// on the files the agents leave on disk.
package session
