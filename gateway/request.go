package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
)

// maxRequest bounds the body of a request. The vendors accept 32 MiB.
const maxRequest = 64 << 20

// asked is what the gateway reads of a request.
type asked struct {
	Model  string            `json:"model"`
	Stream bool              `json:"stream"`
	Tools  []json.RawMessage `json:"tools"`
	// Messages or Input are the conversation.
	Messages []json.RawMessage `json:"messages"`
	Input    json.RawMessage   `json:"input"`
	// WebSearch is how Chat Completions asks for a search of the web.
	WebSearch json.RawMessage `json:"web_search_options"`
	// Servers are servers of tools that the vendor calls.
	Servers []json.RawMessage `json:"mcp_servers"`
}

// length is how long the conversation is.
func (a *asked) length() int {
	n := len(a.Messages)
	input, _ := jsontape.Parse(a.Input)
	for range input.Elements() {
		n++
	}
	if input.Kind() == jsontape.String {
		n++
	}
	return n
}

// readBody reads the whole request: it is counted, recorded and compared before it is passed on.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	if r.Body == nil || r.ContentLength == 0 {
		return nil, nil
	}
	var body bytes.Buffer
	if r.ContentLength > 0 && r.ContentLength <= maxRequest {
		body.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, maxRequest))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &refusal{http.StatusRequestEntityTooLarge, "the request is larger than 64 MiB"}
	case err != nil:
		return nil, &refusal{http.StatusBadRequest, "the request ended before it was complete"}
	}
	return body.Bytes(), nil
}

func setBody(r *http.Request, body []byte) {
	r.ContentLength = int64(len(body))
	r.Header.Del("Content-Length")
	r.Body, r.GetBody = http.NoBody, nil
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
}

// serverTools returns the types of the tools that run at the vendor, and the tools that do not.
func serverTools(request asked) (kinds []string, others []json.RawMessage) {
	if len(request.WebSearch) > 0 {
		kinds = append(kinds, "web_search")
	}
	if len(request.Servers) > 0 {
		kinds = append(kinds, "mcp")
	}
	for _, raw := range request.Tools {
		var tool struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal(raw, &tool) // what cannot be read is passed on, for the vendor to refuse
		if !runsAtVendor(tool.Type) {
			others = append(others, raw)
		} else if !slices.Contains(kinds, tool.Type) {
			kinds = append(kinds, tool.Type)
		}
	}
	return kinds, others
}

// vendorTools are the types of tools that run at the vendor; some versions of them have a suffix.
// Tools that the agent runs itself have no type, or one such as function or custom.
var vendorTools = []string{
	"web_search", "web_fetch", "code_execution", "code_interpreter", "file_search", "image_generation", "mcp",
}

func runsAtVendor(kind string) bool {
	return slices.ContainsFunc(vendorTools, func(known string) bool {
		rest, found := strings.CutPrefix(kind, known)
		return found && (rest == "" || rest[0] == '_')
	})
}

// without returns the request with other tools in place of its own. Everything else stays as it is.
// A choice of a tool that is gone would be refused, so it goes too.
func without(body []byte, others []json.RawMessage) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	delete(fields, "tools")
	delete(fields, "web_search_options")
	delete(fields, "mcp_servers")
	if len(others) > 0 {
		kept, err := json.Marshal(others)
		if err != nil {
			return nil, err
		}
		fields["tools"] = kept
	}
	if isGone(fields["tool_choice"], others) {
		delete(fields, "tool_choice")
	}
	return json.Marshal(fields)
}

// named is a tool, or the choice of one.
type named struct {
	Type     string `json:"type"`
	Name     string `json:"name"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
}

func (n *named) name() string { return firstOf(n.Name, n.Function.Name) }

// isGone reports whether a choice is that of a tool which is not among those that are left.
func isGone(raw json.RawMessage, left []json.RawMessage) bool {
	var choice named
	if json.Unmarshal(raw, &choice) != nil { // a word, such as auto, or nothing
		return len(left) == 0
	}
	if choice.name() == "" {
		return len(left) == 0 || choice.Type != "" && !slices.Contains([]string{"auto", "any", "none"}, choice.Type)
	}
	return !slices.ContainsFunc(left, func(raw json.RawMessage) bool {
		var tool named
		return json.Unmarshal(raw, &tool) == nil && tool.name() == choice.name()
	})
}
