// Package redact takes secrets out of anything that is written: traces,
// ledgers, copies of stderr, callbacks, reports.
//
// # Use
//
//  1. Make one [Redactor] at the start, from the environment of the process,
//     before secrets are removed from it: New(Config{Environ: os.Environ()}).
//  2. Hand it to everything that writes. [Redactor.JSON] is for one JSON value
//     or one line of NDJSON and gives valid JSON back; [Redactor.Bytes] and
//     [Redactor.String] are for other text; [Redactor.Writer] is for streams
//     and [Redactor.Deltas] for the pieces of one message; [Redactor.Lane] is
//     for the lines of one event source of a trace.
//  3. When a secret becomes known later (a token made for this session, the
//     environment of a task), take [Redactor.With] from there on.
//
// # What is found
//
// The first layer is the values of named environment variables, see
// [DefaultEnvVars]: as they are, escaped as JSON any number of times up to
// four (whichever characters the encoder chose to escape), percent-encoded
// (whichever characters, both cases of hex digits), as \x escapes and as
// character references of HTML, in UTF-16, in hex (in one piece, byte by byte
// or in a dump), and in base64 of either alphabet, at any byte offset, wrapped
// into lines or not; and in hex or base64 of the UTF-16, the hex or the base64.
// They become
// [REDACTED:env:NAME]. A value under 4 characters is not looked for, and one
// under 9 bytes not in its encoded forms; a warning names the variable. A value
// of several lines is found whole, and so is each of its lines of 9 bytes and
// more, whatever is in front of it.
//
// A secret may be an ordinary word. Where the same word is the name of a field
// or a fixed value in the form of a trace, it stays: every trace has it there,
// and without it the trace could not be read.
//
// A [Writer] sees a dump line by line and finds only what is in one line.
//
// The second layer is the shapes of well-known credentials, see [Kinds]. They
// become [REDACTED:pattern:KIND].
//
// Where several finds overlap, the whole of their union becomes one
// placeholder, so that nothing of the longer one remains. It names the longest,
// and a variable before a shape. A placeholder that is already there is left as
// it is.
//
// # How it keeps up
//
// Every form of every secret, and every shape, has an anchor: four bytes it
// cannot be without. One pass looks up each four bytes of the text in a small
// table of anchors and only a hit is compared in full. Escapes are not decoded
// on the way: if characters of an anchor itself are escaped, that escape is an
// anchor too, and if others are, the comparison stops at a backslash or a
// percent sign. Only then is the text decoded, layer by layer, and each layer
// searched.
package redact
