package scripted

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// conversation is the common form of the protocols' requests.
type conversation struct {
	model  string
	system string
	stream bool
	// wantsUsage is set where a streamed reply is to end with the usage.
	wantsUsage bool
	tools      []offeredTool
	steps      []step
	// request returns all strings of the request, decoded; nil where nobody will ask.
	request func() []string
}

// stringsIn returns the strings of a JSON value that are not keys, decoded.
func stringsIn(body []byte) []string {
	var value any
	if json.Unmarshal(body, &value) != nil {
		return nil
	}
	var all []string
	var collect func(any)
	collect = func(value any) {
		switch value := value.(type) {
		case string:
			all = append(all, value)
		case []any:
			for _, item := range value {
				collect(item)
			}
		case map[string]any:
			for _, item := range value {
				collect(item)
			}
		}
	}
	collect(value)
	return all
}

// step is one thing that happened: a prompt, a tool result, or a piece of a reply.
type step struct {
	kind stepKind
	text string
	// callID is the id of a tool call among the pieces of a reply.
	callID string
}

type stepKind int

const (
	stepPrompt stepKind = iota + 1
	stepResult
	stepReply
	stepOther // anything else the client said; it only keeps two replies apart
)

// offeredTool is a tool the client offers.
type offeredTool struct {
	name string
	// kind is "function", "custom" for freeform tools, or the type of one of the vendor's tools.
	kind string
	// namespace is set for tools inside a namespace.
	namespace string
	// input are the fields of the input, where the client says so.
	input fields
	// runner is set for a tool that is called by code, which is the input of another one.
	runner *offeredTool
}

// flatName returns the tool's name in protocols without namespaces.
func (t offeredTool) flatName() string {
	if t.namespace == "" {
		return t.name
	}
	return strings.TrimSuffix(t.namespace, "__") + "__" + t.name
}

func (c conversation) texts(kind stepKind) []string {
	var texts []string
	for _, s := range c.steps {
		if s.kind == kind {
			texts = append(texts, s.text)
		}
	}
	return texts
}

func (c conversation) results() []string   { return c.texts(stepResult) }
func (c conversation) lastResult() string  { return c.last(stepResult) }
func (c conversation) lastPrompt() string  { return c.last(stepPrompt) }
func (c conversation) firstPrompt() string { return c.first(stepPrompt) }

func (c conversation) last(kind stepKind) string {
	for i := len(c.steps) - 1; i >= 0; i-- {
		if c.steps[i].kind == kind {
			return c.steps[i].text
		}
	}
	return ""
}

func (c conversation) first(kind stepKind) string {
	for _, s := range c.steps {
		if s.kind == kind {
			return s.text
		}
	}
	return ""
}

// before returns the conversation as it was before step i.
func (c conversation) before(i int) conversation {
	c.steps = c.steps[:i]
	return c
}

// offers reports whether the client offers a tool, by its exact name or as server/tool.
func (c conversation) offers(name string) bool {
	if server, tool, ok := strings.Cut(name, "/"); ok {
		_, found := c.findMCP(server, tool)
		return found
	}
	_, found := c.find(name)
	return found
}

// find looks up a tool by its exact name, in a namespace or not.
func (c conversation) find(name string) (offeredTool, bool) {
	for _, t := range c.tools {
		if t.name == name || t.flatName() == name {
			return t, true
		}
	}
	return offeredTool{}, false
}

// contextPrefixes are the openings of user messages in which clients tell the model about its
// surroundings. They are not prompts.
var contextPrefixes = []string{
	"<system-reminder>", "<environment_context>", "<user_instructions>", "# AGENTS.md instructions",
	"<permissions instructions>", "<session_context>",
}

func isContext(text string) bool {
	trimmed := strings.TrimSpace(text)
	return slices.ContainsFunc(contextPrefixes, func(prefix string) bool { return strings.HasPrefix(trimmed, prefix) })
}

// prompt notes what the user said. Asides join the system prompt, for conditions and for finding
// the working directory.
func (c *conversation) prompt(texts []string) {
	var said []string
	for _, text := range texts {
		if isContext(text) {
			c.system += "\n" + text
		} else if text != "" {
			said = append(said, text)
		}
	}
	if len(said) == 0 {
		c.steps = append(c.steps, step{kind: stepOther})
		return
	}
	c.steps = append(c.steps, step{kind: stepPrompt, text: strings.Join(said, "\n")})
}

func (c *conversation) result(text string) {
	c.steps = append(c.steps, step{kind: stepResult, text: text})
}

// silence is the text that a client inserts as the model's reply when it continues an interrupted
// conversation.
const silence = "No response requested."

func (c *conversation) reply(text, callID string) {
	kind := stepReply
	if text == silence {
		kind = stepOther
	}
	c.steps = append(c.steps, step{kind: kind, text: text, callID: callID})
}

// cwdPatterns match the ways in which clients name the working directory.
var cwdPatterns = []*lazyregexp.Regexp{
	lazyregexp.New(`<cwd>([^<]+)</cwd>`),
	lazyregexp.New(`(?im)\bworking directory(?: is)?: *(/[^\n]*)`),
	lazyregexp.New(`(?m)\bcwd: *(/[^\n]*)`),
	lazyregexp.New(`(?m)\bworking in the directory: *(/[^\n]*)`),
	lazyregexp.New(`(?m)\*\*Workspace Directories:\*\*\s*(?:- *)?(/[^\n]*)`),
}

// cwd returns the agent's working directory, or empty where its prompt does not say.
func (c conversation) cwd() string {
	for _, pattern := range cwdPatterns {
		if m := pattern.FindStringSubmatch(c.system); m != nil {
			return strings.TrimRight(strings.TrimSpace(m[1]), "/")
		}
	}
	return ""
}
