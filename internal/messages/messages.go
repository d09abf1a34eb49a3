// Package messages reads the messages of the Messages API, which several agents print and keep on
// disk: their text, their blocks, their usage.
package messages

import (
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
)

// Assistant receives the parts of a message of the model, in order.
type Assistant interface {
	Text(text string)
	Thinking(text string)
	Call(id, name string, args []byte)
	// ServiceResult is the result of a tool that the model's service ran itself.
	ServiceResult(callID, content string)
	Unknown()
}

// ReadAssistant reads the content of a message of the model: a text, or a list of blocks. The
// receiver gets views that are valid as long as the value is.
func ReadAssistant[A Assistant](content jsontape.Value, to A) {
	if content.Kind() == jsontape.String {
		to.Text(content.Text())
		return
	}
	for block := range content.Elements() {
		switch block.TextOf("type") {
		case "text":
			to.Text(block.TextOf("text"))
		case "thinking":
			to.Thinking(block.TextOf("thinking"))
		case "redacted_thinking":
			to.Thinking("")
		case "tool_use", "server_tool_use":
			to.Call(block.TextOf("id"), block.TextOf("name"), block.Get("input").Raw())
		default:
			if id := block.TextOf("tool_use_id"); id != "" {
				to.ServiceResult(id, Text(block.Get("content")))
			} else {
				to.Unknown()
			}
		}
	}
}

// User receives the parts of a message to the model, in order.
type User interface {
	Text(text string)
	// Attached is something that is not text: an image, a document.
	Attached(kind string)
	Result(callID string, isError bool, content string)
	Unknown()
}

// ReadUser reads the content of a message to the model: a text, or a list of blocks. The receiver
// gets views that are valid as long as the value is.
func ReadUser[U User](content jsontape.Value, to U) {
	if content.Kind() == jsontape.String {
		to.Text(content.Text())
		return
	}
	for block := range content.Elements() {
		switch kind := block.TextOf("type"); kind {
		case "tool_result":
			to.Result(block.TextOf("tool_use_id"), block.Get("is_error").Bool(), Text(block.Get("content")))
		case "text":
			to.Text(block.TextOf("text"))
		case "image", "document":
			to.Attached(kind)
		default:
			to.Unknown()
		}
	}
}

// Text returns the text of a content that is a string or a list of blocks. It may be a view of what
// was parsed.
func Text(content jsontape.Value) string {
	if content.Kind() == jsontape.String {
		return content.Text()
	}
	if block, ok := content.Only(); ok && block.TextOf("type") == "text" {
		return block.TextOf("text")
	}
	var all strings.Builder
	first := true
	for block := range content.Elements() {
		if !first {
			all.WriteByte('\n')
		}
		first = false
		if kind := block.TextOf("type"); kind == "text" {
			all.WriteString(block.TextOf("text"))
		} else {
			all.WriteString("[" + kind + "]")
		}
	}
	return all.String()
}

// Usage reads the counts of tokens of a usage object.
func Usage(u jsontape.Value) (input, output, cacheRead, cacheWrite int64) {
	return u.Get("input_tokens").Int64(), u.Get("output_tokens").Int64(),
		u.Get("cache_read_input_tokens").Int64(), u.Get("cache_creation_input_tokens").Int64()
}
