package session

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/jsontape"
)

// sourceWire is the source of prompts that were seen on the way to the model.
const sourceWire = "wire"

// ToolLabel begins the label of a tool's description.
const ToolLabel = "tool "

// addPrompts gives sessions of a trace the prompts that the record of their calls holds.
func addPrompts(path string, sessions []*EnrichedSession) error {
	var lanes []string
	for _, s := range sessions {
		lanes = append(lanes, s.Lane)
	}
	found, err := RecordedPrompts(calls.Path(path), lanes...)
	for i := range found {
		sessions[i].SystemPrompts = append(sessions[i].SystemPrompts, found[i]...)
	}
	return err
}

// RecordedPrompts returns what the calls in a record sent to the model beside the conversation, for
// each of some participants. A record that is missing, or was made without bodies, has nothing.
func RecordedPrompts(path string, participants ...string) ([][]SystemPromptInjection, error) {
	record, err := calls.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	defer record.Close()
	var all [][]SystemPromptInjection
	for _, participant := range participants {
		found, err := WirePrompts(record, participant)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, found)
	}
	return all, nil
}

// RecordOf returns the path of the record of a trace's calls, which is beside it.
func RecordOf(trace string) string { return calls.Path(trace) }

// WirePrompts returns what a participant's calls sent to the model beside the conversation: system
// prompts, tool definitions, and how they change. A text that stays the same is returned once; one
// that is left out later is returned again, with an empty content.
func WirePrompts(record *calls.Reader, participant string) ([]SystemPromptInjection, error) {
	var own []ModelCall
	for _, call := range record.Calls() {
		if call.Participant == participant {
			own = append(own, ModelCall{Call: call})
		}
	}
	NumberTurns(own)
	c := promptCollector{seen: map[string]bool{}, labels: map[string]bool{}}
	for i := range own {
		if own[i].Turn == 0 {
			continue
		}
		chunks, err := record.Request(&own[i].Call)
		if errors.Is(err, calls.ErrNoBody) {
			continue
		}
		if err != nil {
			return nil, err
		}
		c.request(chunks, own[i].Turn-1)
	}
	return c.found, nil
}

// promptCollector compares each request with those before it.
type promptCollector struct {
	found  []SystemPromptInjection
	seen   map[string]bool // labels with their contents
	labels map[string]bool // of the request before
	parser jsontape.Parser
}

func (c *promptCollector) request(chunks []calls.Chunk, turn int) {
	labels, counts := map[string]bool{}, map[string]int{}
	for i := range chunks {
		label, content, ok := c.prompt(&chunks[i], counts)
		if !ok {
			continue
		}
		labels[label] = true
		c.add(label, content, turn)
	}
	for _, known := range c.found { // in order, unlike the map
		if c.labels[known.Label] && !labels[known.Label] && known.Content != "" {
			c.add(known.Label, "", turn)
		}
	}
	c.labels = labels
}

func (c *promptCollector) add(label, content string, turn int) {
	key := label + "\x00" + content
	if c.seen[key] {
		return
	}
	c.seen[key] = true
	c.found = append(c.found, SystemPromptInjection{
		Source:    sourceWire,
		Label:     label,
		Content:   content,
		TurnIndex: turn,
	})
}

// prompt reads a part of a request; it reports false for one that is part of the conversation.
func (c *promptCollector) prompt(chunk *calls.Chunk, counts map[string]int) (label, content string, ok bool) {
	if chunk.Member == "" {
		return "", "", false
	}
	v, _ := c.parser.Parse(chunk.Value)
	switch chunk.Member {
	case "tools":
		return toolPrompt(v)
	case "messages", "input", "contents":
		role := v.TextOf("role")
		if role != "system" && role != "developer" {
			return "", "", false
		}
		label, content = role, contentText(v.Get("content"))
	default:
		label, content = chunk.Member, contentText(v)
	}
	counts[label]++
	return fmt.Sprintf("%s[%d]", label, counts[label]-1), content, true
}

// toolPrompt returns the description of a tool in a request: what it does, and what it takes.
func toolPrompt(v jsontape.Value) (label, content string, ok bool) {
	definition := v
	if function := v.Get("function"); function.Exists() { // of a chat completion
		definition = function
	}
	name := cmp.Or(definition.TextOf("name"), v.TextOf("type")) // one of the vendor's own has only a type
	content = strings.Clone(definition.TextOf("description"))
	for _, key := range []string{"input_schema", "parameters", "format", "tools"} {
		if schema := definition.Get(key); schema.Exists() {
			var indented bytes.Buffer
			if json.Indent(&indented, schema.Raw(), "", "  ") == nil {
				content += "\n" + indented.String()
			}
		}
	}
	return ToolLabel + strings.Clone(name), content, true
}

// contentText returns the text of a message's content: a string, a block, or a list of blocks.
func contentText(v jsontape.Value) string {
	switch v.Kind() {
	case jsontape.String:
		return strings.Clone(v.Text())
	case jsontape.Object:
		if parts := v.Get("parts"); parts.Exists() {
			return contentText(parts)
		}
		return strings.Clone(v.TextOf("text"))
	default:
		var texts []string
		for block := range v.Elements() {
			texts = append(texts, contentText(block))
		}
		return strings.Join(texts, "\n")
	}
}
