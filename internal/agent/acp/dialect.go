package acp

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
)

// dialectName names the format of the protocol's lines, bare or as {"dir","t","msg"}.
const dialectName = "acp"

// rules holds what is needed to read an agent's stream. The trace has them with the first message,
// so that it can be read without the agent's entry.
type rules struct {
	Agent    string   `json:"agent,omitempty"`
	Usage    string   `json:"usage,omitempty"`
	ToolName string   `json:"toolName,omitempty"`
	Errors   []string `json:"errors,omitempty"`
	Notices  []string `json:"notices,omitempty"`
}

func rulesOf(e Entry) rules {
	return rules{
		Agent:    e.ID,
		Usage:    e.Usage,
		ToolName: e.ToolName,
		Errors:   e.Errors,
		Notices:  e.Notices,
	}
}

// rulesNamed returns the rules of the agent in the table with a name.
func rulesNamed(name string) (rules, bool) {
	for _, entry := range table {
		if slices.Contains(entry.Names, name) {
			return rulesOf(entry), true
		}
	}
	return rules{}, false
}

// learn fills in missing rules from the table's entry for an agent's name.
func (r *rules) learn(name string) {
	known, found := rulesNamed(name)
	if !found {
		return
	}
	r.Agent = cmp.Or(r.Agent, known.Agent)
	if r.Usage == "" && r.ToolName == "" && len(r.Errors) == 0 && len(r.Notices) == 0 {
		r.Usage, r.ToolName, r.Errors, r.Notices = known.Usage, known.ToolName, known.Errors, known.Notices
	}
}

// dialect returns the protocol as a format of traces and recordings.
func dialect(known rules) session.Dialect {
	return session.Dialect{
		Name:      dialectName,
		Agent:     session.AgentID(table[0].ID),
		Recognise: recognise,
		Repeats:   repeats,
		BothSides: true,
		New:       func() session.Decoder { return newDecoder(known) },
	}
}

// recognise reports whether a message is one that no other format has.
func recognise(event []byte) bool {
	v, ok := jsontape.Parse(event)
	if !ok || v.Kind() != jsontape.Object {
		return false
	}
	if inner := v.Get("msg"); inner.Kind() == jsontape.Object && v.Get("dir").Kind() == jsontape.String {
		v = inner
	}
	if v.TextOf("jsonrpc") != "2.0" {
		return false
	}
	switch v.TextOf("method") {
	case "initialize":
		return v.Path("params", "clientCapabilities").Exists() && v.Path("params", "protocolVersion").Exists()
	case "session/update":
		return v.Path("params", "update").TextOf("sessionUpdate") != ""
	case "session/request_permission":
		return v.Path("params", "toolCall").Exists()
	case "session/prompt":
		return v.Get("params").TextOf("sessionId") != ""
	case "":
		return v.Path("result", "agentCapabilities").Exists() || v.Get("result").TextOf("stopReason") != ""
	}
	return false
}

// longUpdate is the length from which an update about a running call is checked for repetition.
const longUpdate = 4 << 10

// repeats reports whether a line only has the output of a tool so far, which makes the stream of a
// long command grow with the square of its output. The last update of the call has it all.
func repeats(line []byte) bool {
	if len(line) < longUpdate || !bytes.Contains(line, []byte(`"in_progress"`)) {
		return false
	}
	v, _ := jsontape.Parse(line)
	update := v.Path("params", "update")
	if update.TextOf("sessionUpdate") != "tool_call_update" || update.TextOf("status") != statusRunning {
		return false
	}
	output := 0
	for part := range update.Get("content").Elements() {
		if part.TextOf("type") == "content" {
			output += len(part.Raw())
		}
	}
	return 2*output > len(line) // most of it; otherwise it is the input that is long
}
