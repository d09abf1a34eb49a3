// Package query asks questions of traces. It is the engine of fit-trace.
//
// # How a question is answered
//
//  1. Open names a file. It may be NDJSON (enveloped or bare), gzip or zstd of that, standard
//     input, or a structured document that an earlier version wrote.
//  2. The package query/internal/scan reads the file in blocks, on all cores, and notes where the
//     parts of every line lie. Nothing is decoded.
//  3. One consumer receives the scanned blocks in the order of the file, numbers the entries and
//     hands each to the question as a Cursor, which decodes only what is asked of it. Memory stays
//     flat however long the file is.
//  4. Lanes that speak another dialect than the stream of system, assistant, user and result
//     objects are decoded by the session.Dialects that Open was handed, and their canonical events
//     become entries of the same shapes.
//  5. The models' turns, tokens and cost are counted by package session, lane by lane.
//
// A Trace that has read its file to the end knows where entries are; a later Trace of the same file
// can be given it as Options.Known, and then finds its parts without reading what is before them.
//
// # Entries
//
// An Entry is the unit in which a trace is shown: a system event, an assistant event, the text of a
// user event, or one tool result. Entries are numbered from 0 in the order of the file over all
// lanes; filters never renumber them. A turn is one reply of a model; Info.Turns counts those.
//
// # What is wrong with a file
//
// Nothing in a file is fatal. Lines that are not JSON objects, lines beyond trace.MaxLine and a
// torn last line are skipped and counted in Info.Problems.
package query
