// Package command runs any program as an agent: the prompt is passed on standard input or in a
// file, the answer is read from standard output, and the exit code reports success.
//
//	fit-harness run --agent 'cmd:./my-agent --prompt-file {prompt}' --task-text "Fix it"
//
// A program that prints events instead of text (package events, with the prefix cmd+ndjson or
// "events: ndjson" in agents.yaml) gets traces with tools, milestones and costs, and limits on
// turns and dollars.
//
// Words of the command that begin with ./ or ../ are files beside agents.yaml, or in the current
// directory; they can be read inside a sandbox, as can the program. Words in braces are filled in:
//
//	{prompt}     file with the prompt; without it the prompt is on standard input
//	{system}     file with the system prompt
//	{mcp}        file with the tool servers, {"mcpServers":{…}}
//	{model}      name of the model
//	{model_url}  model endpoint, without /v1
//	{session}    id of the conversation
//	{dir}        working directory
//	{home}       directory that is kept for the conversation
//
// The program never sees the caller's environment: it gets the common variables, the keys it is
// said to need, and the addresses of the model under the names that the vendors' SDKs read.
package command
