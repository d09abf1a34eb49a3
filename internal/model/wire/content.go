package wire

import (
	"bytes"
	"encoding/json"
	"strings"
)

// OpenAIContent is a list of parts; on the wire it may also be a plain string.
type OpenAIContent []OpenAIPart

// OpenAIPart is a part of a message's content. Parts that hold no text (images, files) have only a
// type.
type OpenAIPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
	// Refusal is what the model said in declining; its type is "refusal".
	Refusal string `json:"refusal,omitempty"`
}

// MarshalJSON adds what a finished text must carry.
func (p OpenAIPart) MarshalJSON() ([]byte, error) {
	m := map[string]any{"type": p.Type, "text": p.Text}
	switch p.Type {
	case "output_text":
		m["annotations"] = []any{}
	case "refusal":
		delete(m, "text")
		m["refusal"] = p.Refusal
	}
	return json.Marshal(m)
}

// UnmarshalJSON accepts a string, a list of parts, or null; any other value is kept as its JSON
// text, which is what a model would be shown.
func (c *OpenAIContent) UnmarshalJSON(data []byte) error {
	*c = nil
	data = bytes.TrimSpace(data)
	if text, ok := jsonString(data); ok {
		*c = OpenAIContent{{Type: "text", Text: text}}
		return nil
	}
	if len(data) == 0 || string(data) == "null" {
		return nil
	}
	var parts []OpenAIPart
	if json.Unmarshal(data, &parts) != nil {
		parts = []OpenAIPart{{Type: "text", Text: string(data)}}
	}
	*c = parts
	return nil
}

func (c OpenAIContent) orEmpty() OpenAIContent {
	if c == nil {
		return OpenAIContent{}
	}
	return c
}

// Text joins the parts that hold text.
func (c OpenAIContent) Text() string {
	var texts []string
	for _, p := range c {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func jsonString(data []byte) (string, bool) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || data[0] != '"' {
		return "", false
	}
	var text string
	err := json.Unmarshal(data, &text)
	return text, err == nil
}
