// Package mcpserve gives agents in processes of their own a way to the tools of a session: one MCP
// server on the loopback interface, a thin shell over the harness's Dispatcher. It knows nothing
// about the tools but what the dispatcher says of them.
//
//  1. NewKeyring makes the bearer tokens before anything is written, so that the redactor can know them: one participant, one token.
//  2. Keyring.Connect is the Connect function of harness.Options: it opens the server when the session starts and closes it when the last agent has ended.
//  3. An agent gets the server's address and its own token as an attached tool server. Who calls is decided by the token alone.
//
// All tools are annotated as read-only, because agents run only such calls side by side, and a call
// that takes long reports progress, because clients give up on a silent one. Agents that can only
// start a program and talk to it over its standard streams get Relay, which passes messages to the
// same server.
package mcpserve
