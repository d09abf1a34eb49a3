// Package mcpserve connects agents in other processes to the tools of a session: an MCP server that
// is a thin shell over the harness's Dispatcher. All it knows about the tools comes from the
// dispatcher.
//
//  1. NewKeyring makes the secrets of a session before anything is written, so that the redactor
//     can know them.
//  2. Keyring.Connect is the Connect function of harness.Options: it opens the server when the
//     session starts and closes it when the last agent has ended.
//  3. An agent gets its own Unix socket as an attached tool server, and a program that relays
//     to it (package mcprelay).
//
// # Who calls
//
// A connection belongs to a participant if its peer is a process that the participant's agent
// started, or this process, in which the built-in agent runs. Any other connection is refused, and
// the refusal is in the trace: a participant that finds the socket of the lead cannot conclude the
// session in the lead's name. The kernel says who the peer is, so there is no secret to steal.
//
// With Config.HTTP, agents get an address on the loopback interface and a bearer token instead. The
// peer of a TCP connection is checked as well, through /proc: a process that hides its open files
// is refused.
//
// On systems other than Linux the peer is not checked.
//
// All tools are annotated as read-only, because agents run only such calls side by side, and a call
// that takes long reports progress, because clients give up on a silent one.
package mcpserve
