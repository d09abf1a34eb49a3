// Package events is the event format for people who write their own agents: six kinds of JSON
// objects, one a line, from which fit makes traces, milestones and costs.
//
//	{"type":"text","text":"I'll look at the file first."}
//	{"type":"tool_call","id":"1","name":"bash","input":{"command":"go test ./..."}}
//	{"type":"tool_result","id":"1","output":"ok","exit_code":0}
//	{"type":"usage","model":"my-model","input_tokens":1200,"output_tokens":80}
//	{"type":"error","kind":"rate_limit","status":429,"message":"slow down","retrying":true}
//	{"type":"result","success":true,"text":"Done.","session":"c-17"}
//
// Texts are sent whole, not in pieces. Fields that are not known are ignored, and so are objects of
// another type. The format's schema is docs/schema/agent-events.schema.json; fields are added to
// it, never renamed or removed.
package events
