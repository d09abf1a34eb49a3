// Package scripted is a model that does what a script says. It is an HTTP server on the loopback
// interface that speaks Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Google's
// generateContent, whole and streamed, so that any real client can be run against it: no key, no
// network, the same result every time.
//
//	script, err := scripted.Load("fix-add.json")
//	server, err := scripted.Listen("127.0.0.1:0", scripted.NewServer(map[string]*scripted.Script{"": script}, scripted.Options{}))
//	defer server.Close()
//	// run an agent with ANTHROPIC_BASE_URL=server.URL, or OPENAI_BASE_URL=server.URL+"/v1"
//
// # Scripts
//
// A script is JSON: an ordered list of turns. One script drives every agent, because it says what
// is to be done and not which tool does it:
//
//	{"turns": [
//	  {"thinking": "Look first.", "text": "I'll read the file.", "calls": [{"read": "calc.go"}]},
//	  {"calls": [{"edit": "calc.go", "old": "return a - b", "new": "return a + b"}]},
//	  {"label": "test", "calls": [{"bash": "go test ./..."}]},
//	  {"cases": [
//	    {"when": {"last_result": "FAIL"}, "text": "Not yet.", "calls": [{"bash": "git diff"}]},
//	    {"when": {"last_result": "re:^ok\\s"}, "goto": "done"}],
//	   "text": "I cannot tell."},
//	  {"goto": "test"},
//	  {"label": "done", "text": "Add adds now, and the tests pass.", "usage": {"input": 1200, "output": 80, "cache_read": 900}}
//	]}
//
// The calls, one verb each:
//
//	{"bash": "go test ./...", "timeout_ms": 60000}          a shell command
//	{"read": "a.go"}                                        a file's content
//	{"write": "a.go", "content": "package a\n"}             a new or replaced file
//	{"edit": "a.go", "old": "x", "new": "y"}                the one occurrence of a text replaced
//	{"glob": "**/*.go"}  {"grep": "TODO", "in": "src"}      files by name, lines by expression
//	{"mcp": "server/tool", "input": {"any": "object"}}      a tool of an MCP server, by whatever name the client offers it
//	{"tool": "Agent", "input": {"any": "object"}}           exactly this tool
//	{"tool": "apply_patch", "raw": "*** Begin Patch…"}      exactly this tool and this input, valid or not
//	{"first_of": [{"tool": "A"}, {"tool": "B"}]}            the first whose tool is offered
//
// Paths are relative to the agent's working directory, which is read out of its prompt where a tool
// wants absolute ones. A verb becomes the tool that the request offers for it: one whose name is
// among those such tools go by (Bash, exec_command, shell, …) and whose schema has the fields that
// the verb needs, under whatever name (command or cmd, file_path or path, two texts or a list of
// edits). Its input is what the schema asks for, so that unknown agents are driven as well as the
// known ones. Tools that are declared as functions for a freeform tool are called by a line of
// JavaScript. Where a client has no tool for a verb, a patch or the shell does it. Some clients
// edit and overwrite only files that were read before, so a script for all agents reads first.
//
// Other fields of a turn: "stop" (a stop reason in Anthropic's words: "max_tokens", "refusal", …),
// "delay_ms" before the first byte, "chunk_delay_ms" between the pieces of a stream, "usage",
// "goto" (another turn's "label"), "cases" (the first whose "when" holds), "choices" (drawn by
// "weight"), and "fault":
//
//	{"fault": {"status": 529, "times": 2, "retry_after": "1"}, "text": "…"}   two errors, then the turn
//	{"fault": {"stream": "cut", "times": 1}, "text": "…"}                     half a stream, then the whole
//
// "status" is an HTTP error with "type", "code" and "message"; "stream" is "cut" (the connection
// breaks), "end" (half of the reply, as if that were all), "error" (an error event), "hang"
// (silence) or "drop" (closed before the first byte).
// "after" is the number of events sent before the fault, half of them by default. Without "times"
// it is forever.
//
// A condition has "prompt" (the last user message), "first_prompt", "any_prompt", "last_result",
// "any_result", "system", "request" (some text of the whole request, wherever the client puts it),
// "model" and "tool" (offered by the client), all of which must hold, and "not", "any", "all".
// Texts match as substrings, or as regular expressions after "re:".
//
// At the top level, beside "turns": "scenarios" (named lists of turns with a "when", the first that
// holds answers; "turns" are the last of them, called main), "vars" and "captures" ({"var": "id",
// "from": "last_result", "regex": "id=(\\d+)"}) for ${name} in texts and inputs, "usage" as the
// default, "end" (the reply past the last turn), "aux" (the reply to requests that offer no tools,
// such as titles), and "key" (the only API key accepted). ${prompt}, ${last_result}, ${cwd},
// ${model}, ${key} and ${seed} are always there; unknown names are left alone, so that shell
// variables survive.
//
// # Which turn comes next
//
// The reply is a function of the request alone: the server replays the script along the
// conversation in the request. A client may retry, reconnect, resume in a new process, or hold many
// conversations at once. Tool-call ids carry the number of their turn, so that the place is found
// again even where a client drops or merges messages. A conversation with several prompts continues
// through the script. The one exception is a fault with "times", which counts the attempts at the
// same state of the same conversation.
//
// # Addresses
//
// Several scripts are served at once: /s/NAME/v1/… is answered by the script called NAME, /v1/… by
// the one called "". A cell of an experiment adds its key and seed, /s/NAME/c/KEY/seed/N/v1/…, and
// "choices" are drawn from the seed: another seed, another run; the same seed, the same run. The
// key takes its place where there is none. Path makes such addresses.
package scripted
