// Package calls is the record of what an agent sent to its model and what came back: the file
// agent.calls beside a trace.
//
// # Format
//
// The file begins with the line "fit calls 1" and is only ever appended to. Frames follow. A frame
// has a head of 16 bytes: the three bytes of frameMark, its kind, the length of what follows, and
// two checksums, of what follows and of the head itself. There are three kinds:
//
//   - C is one [Call] as JSON.
//   - B holds the chunks that a call brings and that the file does not have yet, packed with zstd
//     behind a table of their lengths and SHA-256 sums.
//   - P is a [Place] as JSON: where a participant works, so that a replay elsewhere can put its own
//     directory in the place of the recorded one.
//
// A body is a list of chunks which, joined, are the body byte for byte. A request is cut at its
// system blocks, tool definitions and messages, so that what it shares with the request before is
// stored once, and a growing conversation costs what is new in it. Secrets are removed before
// anything is written.
//
// The frames of one call are written at once. A writer that is killed in between leaves a torn end,
// which the next writer cuts off and a reader reports. Because the head of a frame has its own
// checksum, a reader skips bodies without reading them, and finds the frames after a damaged one.
//
// The format carries a version and a promise: fields and kinds of frames are added, never renamed
// or removed, and old files stay readable. Readers skip kinds that they do not know.
package calls
