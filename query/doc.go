// Package query asks questions of traces: it is the engine of fit-trace.
//
// # The way the data goes
//
//  1. Open names a file. It may be NDJSON (enveloped or bare), gzip or zstd of that, standard input, or a structured document that an earlier version wrote.
//  2. The file is read in blocks of about a mebibyte that end at newlines. Every core takes blocks and scans their lines with a validating scanner that
//     allocates nothing: it checks that the line is JSON (escapes inside long strings are left for later) and notes where the parts lie that any question may
//     need: type, lane, message id, usage, content blocks. Nothing is decoded yet.
//  3. One consumer receives the scanned blocks in the order of the file, numbers the turns and hands each to the question as an Entry, which decodes only
//     what is asked of it. Memory stays flat however long the file is.
//  4. Lanes that speak another dialect than the stream of system, assistant, user and result objects are decoded by the session.Dialects that Open was
//     handed, and their canonical events become turns of the same shapes.
//
// Over Options.IndexFrom bytes the first complete pass leaves an index beside the file (or in a
// cache directory): offsets, kinds, lanes, tools and error flags of every line. It is checked
// against the file's size, modification time and edges, rebuilt silently, and may be deleted at any
// time.
//
// # Turns
//
// A turn is one rendered record and not a call of the model: a system event, an assistant event,
// the text of a user event, and every tool result are one turn each. Turns are numbered from 0 in
// the order of the file over all lanes; filters never renumber them.
//
// # What is wrong with a file
//
// Nothing in a file is fatal. Lines that are no JSON objects, lines beyond trace.MaxLine and a torn
// last line are skipped and counted in Info.Problems.
package query
