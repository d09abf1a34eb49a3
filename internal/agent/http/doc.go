// Package http drives an agent that is deployed somewhere: every prompt is one HTTP request, and
// the answer is found in the JSON that comes back.
//
//	agents:
//	  - id: support-bot
//	    kind: http
//	    url: https://support.example.com/chat
//	    headers: {Authorization: "Bearer ${SUPPORT_TOKEN}"}
//	    body: {message: "{prompt}", conversation: "{session}"}
//	    answer: reply.text
//	    session: conversation.id
//	    usage: {input: usage.prompt_tokens, output: usage.completion_tokens}
//
// The body is written as YAML or JSON; {prompt}, {system}, {model} and {session} are filled in
// inside its strings, so that no prompt can break it. Answer, session and usage are JMESPath
// expressions. Values of headers come from the environment with ${NAME}, and are redacted from
// everything that is written. Redirects are not followed: a key is sent only to the address that
// was given. The agent works where it is deployed, so it neither sees nor changes the working
// directory.
package http
