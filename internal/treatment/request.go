package treatment

import (
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
)

// The parts of a request. The first three are what the model is given; Piece.Where names them.
const (
	inSystem   = "system"
	inMessages = "messages"
	inTools    = "tools"
	inResults  = "results" // of tools
	inReplies  = "replies" // of the model
)

// text is one string of a request.
type text struct {
	part string
	text string
}

// request is what counts in the body of a request, whichever protocol it has.
type request struct {
	model   string
	texts   []text
	tools   []tool
	turns   int    // how long the conversation is
	stored  string // what the vendor holds of it: its content cannot be seen
	options map[string]string
}

// tool is a tool that a request offers.
type tool struct{ name, definition string }

// parseRequest reads the body of a request; false if it is not one.
func parseRequest(parser *jsontape.Parser, body []byte) (*request, bool) {
	value, ok := parser.Parse(body)
	if !ok || value.Kind() != jsontape.Object {
		return nil, false
	}
	q := &request{options: map[string]string{}}
	for name, member := range value.Members() {
		switch strings.ToLower(strings.ReplaceAll(name, "_", "")) {
		case "model":
			q.model = strings.Clone(member.Text())
		case "system", "instructions", "systeminstruction":
			q.collect(inSystem, member)
		case "tools":
			q.offer(member)
		case "messages", "input", "contents":
			q.conversation(member)
		case "previousresponseid", "conversation", "prompt", "cachedcontent":
			if kind := member.Kind(); kind == jsontape.Object || member.Text() != "" {
				q.stored = strings.Clone(name)
			}
		default:
			q.options[strings.Clone(name)] = string(member.Raw())
		}
	}
	return q, true
}

// collect adds every string of a value to a part.
func (q *request) collect(part string, value jsontape.Value) {
	switch value.Kind() {
	case jsontape.String:
		q.texts = append(q.texts, text{part, strings.Clone(value.Text())})
	case jsontape.Array:
		for element := range value.Elements() {
			q.collect(part, element)
		}
	case jsontape.Object:
		for name, member := range value.Members() {
			if !isLabel(name) {
				q.collect(part, member)
			}
		}
	}
}

// isLabel reports whether a member says what its object is and is not itself read by the model, or
// is no text.
func isLabel(name string) bool {
	switch name {
	case "type", "role", "id", "call_id", "tool_use_id", "tool_call_id", "cache_control", "signature", "data",
		"encrypted_content", "image_url", "thoughtSignature", "media_type", "mimeType", "status":
		return true
	}
	return false
}

// offer adds tools. Some are groups of others.
func (q *request) offer(list jsontape.Value) {
	q.collect(inTools, list)
	q.name(list)
}

func (q *request) name(list jsontape.Value) {
	for element := range list.Elements() {
		if function := element.Get("function"); function.Exists() {
			element = function
		}
		inner := false
		for _, group := range []string{"functionDeclarations", "function_declarations", "tools"} {
			if members := element.Get(group); members.Kind() == jsontape.Array {
				q.name(members)
				inner = true
			}
		}
		name := element.TextOf("name")
		if name == "" {
			name = element.TextOf("type") // one of the vendor's own
		}
		if !inner && name != "" {
			q.tools = append(q.tools, tool{strings.Clone(name), string(element.Raw())})
		}
	}
}

// conversation adds the messages: a text, or a list.
func (q *request) conversation(value jsontape.Value) {
	if value.Kind() == jsontape.String {
		q.turns++
		q.collect(inMessages, value)
		return
	}
	for message := range value.Elements() {
		kind := message.TextOf("type")
		switch kind {
		case "additional_tools", "mcp_list_tools": // Codex puts its tools here
			q.offer(message.Get("tools"))
			continue
		case "item_reference":
			q.stored = "item_reference"
			continue
		}
		q.turns++
		q.message(partOf(message.TextOf("role"), kind), message)
	}
}

// partOf returns the part that a message belongs to.
func partOf(role, kind string) string {
	switch {
	case strings.HasSuffix(kind, "_output") || kind == "tool_result" || role == "tool" || role == "function":
		return inResults
	case strings.HasSuffix(kind, "_call") || kind == "reasoning" || role == "assistant" || role == "model":
		return inReplies
	case role == "system" || role == "developer":
		return inSystem
	}
	return inMessages
}

// message adds a message; the results of tools may be blocks of what the user says.
func (q *request) message(part string, message jsontape.Value) {
	blocks := message.Get("content")
	if !blocks.Exists() {
		blocks = message.Get("parts")
	}
	if blocks.Kind() != jsontape.Array {
		q.collect(part, message)
		return
	}
	for block := range blocks.Elements() {
		in := part
		if block.TextOf("type") == "tool_result" || block.Get("functionResponse").Exists() {
			in = inResults
		}
		q.collect(in, block)
	}
}

// given reports whether what is in a part is given to the model by the agent.
func given(part string) bool { return part == inSystem || part == inMessages || part == inTools }
