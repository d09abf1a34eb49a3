package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/model/wire"
)

// vendorWork is what a request asks the model's vendor to do: run tools, or fetch an address. It
// would give an agent without a network access to the world.
type vendorWork struct {
	kinds []string
	body  []byte // the request without it; nil if it asks for nothing of the kind
}

// edit replaces a part of a request with a text.
type edit struct {
	start, end int
	text       []byte
}

// finder searches a request.
type finder struct {
	text     []byte
	protocol *wire.Info

	kinds []string
	gone  int // tools that run at the vendor
	edits []edit
}

// read lists the members of requests that the gateway reads. A server that ignores their case, or
// takes the other one of two, would see another request than we do.
var read = []string{
	"model", "stream", "tools", "tool_choice", "messages", "input", "contents", "web_search_options", "execution",
	"search_parameters", "mcp_servers", "plugins", "max_tokens", "max_completion_tokens", "max_output_tokens",
	"generationConfig", "generation_config", "n", "service_tier", "speed", "previous_response_id", "conversation",
	"prompt", "container", "cachedContent", "cached_content", "type", "content", "output", "parts",
}

// ambiguous reports what two servers can read differently in an object of a request; empty if
// nothing.
func (f *finder) ambiguous(object jsontape.Value) string {
	seen := map[string]bool{}
	for name := range object.Members() {
		folded := f.fold(name)
		if strings.ContainsAny(name, "\\\uFFFD") { // half of a character stays as it was written
			return "the request has a name that is not text"
		}
		if seen[folded] {
			return fmt.Sprintf("the request has %q twice", strings.ToLower(name))
		}
		seen[folded] = true
		meant := slices.IndexFunc(read, func(known string) bool { return f.fold(known) == folded })
		if meant >= 0 && !slices.Contains(read, name) {
			return fmt.Sprintf("the request has %q in place of %q", strings.Clone(name), read[meant])
		}
	}
	return ""
}

// fold returns the common form of the names of a member: without case, and with the plain letters
// that Unicode has in place of others, as decoders compare names.
func (f *finder) fold(name string) string {
	if f.protocol.SnakeCase {
		name = strings.ReplaceAll(name, "_", "")
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
		name = strings.ToUpper(norm.NFKC.String(name)) // which the long s has in common with the other
	}
	return strings.ToLower(name)
}

// findVendorWork finds what a request asks of its vendor. An error says that the request can be
// read in two ways.
func findVendorWork(protocol string, body []byte) (vendorWork, error) {
	request, ok := jsontape.Parse(body)
	if !ok || request.Kind() != jsontape.Object {
		return vendorWork{}, nil // the upstream's to refuse
	}
	f := &finder{text: body, protocol: wireOf(protocol).Info()}
	if wrong := f.ambiguous(request); wrong != "" {
		return vendorWork{}, fmt.Errorf("%s; servers interpret that differently", wrong)
	}
	left, err := f.tools(request.Get("tools"))
	if err != nil {
		return vendorWork{}, err
	}
	fewer := f.gone > 0
	var members [][]byte
	for name, value := range request.Members() {
		switch start := len(f.edits); name {
		case "tools":
			if fewer && len(left) > 0 {
				members = appendMember(members, name, array(left))
			}
			if fewer {
				continue
			}
		case "prompt":
			if value.Kind() == jsontape.Object { // it is kept at the vendor, with tools of its own
				f.found("stored prompt")
				continue
			}
		case "model":
			if plain, online := strings.CutSuffix(value.Text(), ":online"); online {
				f.found("online")
				quoted, _ := json.Marshal(plain) // a string always can be
				members = appendMember(members, name, quoted)
				continue
			}
		case "messages", "input", "contents":
			if err := f.conversation(value); err != nil {
				return vendorWork{}, err
			}
			members = appendMember(members, name, f.edited(value, f.edits[start:]))
			continue
		default:
			if f.service(name, value) {
				continue
			}
		}
		members = appendMember(members, name, value.Raw())
	}
	if len(f.kinds) == 0 {
		return vendorWork{}, nil
	}
	if fewer {
		members = withoutChoice(members, left)
	}
	return vendorWork{f.kinds, slices.Concat([]byte("{"), bytes.Join(members, []byte(",")), []byte("}"))}, nil
}

// appendMember adds a member of an object.
func appendMember(members [][]byte, name string, value []byte) [][]byte {
	quoted, _ := json.Marshal(name) // a string always can be
	return append(members, slices.Concat(quoted, []byte(":"), value))
}

// array writes elements as an array.
func array(elements [][]byte) []byte {
	return slices.Concat([]byte("["), bytes.Join(elements, []byte(",")), []byte("]"))
}

// service notes a member that asks the vendor for something other than a tool.
func (f *finder) service(name string, value jsontape.Value) bool {
	asks := func(word string) bool { return strings.Contains(name, word) }
	switch {
	case !slices.ContainsFunc([]string{"search", "mcp", "plugin", "container", "cached"}, asks),
		value.Kind() == jsontape.Null, value.Kind() == jsontape.Array && value.Empty():
		return false
	case name == "mcp_servers":
		f.found("mcp")
	case name == "plugins":
		for plugin := range value.Elements() {
			f.found("plugin " + plugin.TextOf("id"))
		}
	case name == "web_search_options" || name == "search_parameters":
		f.found("web_search")
	default:
		f.found(name)
	}
	return true
}

// found notes work of the vendor.
func (f *finder) found(kind string) {
	if kind = strings.Clone(strings.TrimSpace(kind)); !slices.Contains(f.kinds, kind) {
		f.kinds = append(f.kinds, kind)
	}
}

// tools notes the tools that run at the vendor, and returns those that do not.
func (f *finder) tools(list jsontape.Value) (left [][]byte, err error) {
	for tool := range list.Elements() {
		if wrong := f.ambiguous(tool); wrong != "" {
			return nil, fmt.Errorf("a tool of %s; servers interpret that differently", wrong)
		}
		switch kind, own := f.runsAtAgent(tool); {
		case f.protocol.OwnTools != "":
			left = append(left, f.declared(tool)...)
		case !own:
			f.gone++
			f.found(kind)
		case tool.Get("tools").Exists(): // a set of tools
			inner, err := f.tools(tool.Get("tools"))
			if err != nil {
				return nil, err
			}
			start, end := tool.Get("tools").Span()
			left = append(left, f.edited(tool, []edit{{start, end, array(inner)}}))
		default:
			left = append(left, tool.Raw())
		}
	}
	return left, nil
}

// declared notes the vendor's tools, which are members of an object with the agent's, and returns
// the declaration of the agent's.
func (f *finder) declared(tool jsontape.Value) (own [][]byte) {
	for name, value := range tool.Members() {
		if f.fold(name) == f.fold(f.protocol.OwnTools) {
			own = append(own, slices.Concat([]byte("{"), appendMember(nil, name, value.Raw())[0], []byte("}")))
			continue
		}
		f.gone++
		f.found(name)
	}
	return own
}

// clientTools are the types of tools that the agent runs itself. Every other type is one that the
// vendor runs, or may come to run.
var clientTools = []string{
	"function", "custom", "namespace", "local_shell", "apply_patch", "computer", "computer_use_preview",
}

// datedTools are types of tools that the agent runs itself, before the date of their version.
var datedTools = lazyregexp.New(`^(bash|text_editor|computer|memory)_\d{8}$`)

// searchesItself are names of models whose every reply may come from a search.
var searchesItself = lazyregexp.New(`(?i)search-(preview|api)|deep-research|(^|/)sonar`)

// runsAtAgent reports whether the agent runs a tool itself, and what the tool is called if not. A
// tool without a type is one of the agent's where it has the form of one.
func (f *finder) runsAtAgent(tool jsontape.Value) (kind string, own bool) {
	typed := tool.Get("type")
	switch kind = typed.Text(); {
	case slices.Contains(clientTools, kind) || datedTools.MatchString(kind):
		return kind, true
	case kind == "shell":
		place := tool.Get("environment").TextOf("type")
		if place != "" && place != "local" {
			kind += " in " + place
		}
		return kind, place == "local"
	case kind == "tool_search":
		return kind, tool.TextOf("execution") == "client"
	case kind != "":
		return kind, false
	}
	untyped := !typed.Exists() || typed.Kind() == jsontape.Null
	own = untyped && tool.Kind() == jsontape.Object &&
		(f.protocol.Name == Anthropic && tool.TextOf("name") != "" || tool.Get("function").Exists())
	return "a tool of no known type", own
}

// conversation looks for tools that come in the middle of a conversation, and for content that the
// vendor would fetch.
func (f *finder) conversation(list jsontape.Value) error {
	for item := range list.Elements() {
		if wrong := f.ambiguous(item); wrong != "" {
			return fmt.Errorf("a part of %s; servers interpret that differently", wrong)
		}
		if tools := item.Get("tools"); tools.Exists() { // some agents add tools in the middle
			before := f.gone
			left, err := f.tools(tools)
			if err != nil {
				return err
			}
			if start, end := tools.Span(); f.gone > before {
				f.edits = append(f.edits, edit{start, end, array(left)})
			}
		}
		for _, name := range []string{"content", "output", "parts"} {
			if err := f.content(item.Get(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// media are words in the types of content that is not text.
var media = []string{"image", "document", "file", "audio", "video"}

// content looks at the blocks of a message, and at those in the results of tools.
func (f *finder) content(blocks jsontape.Value) error {
	for block := range blocks.Elements() {
		kind := block.TextOf("type")
		if slices.ContainsFunc(f.protocol.FileMembers, func(name string) bool { return block.Get(name).Exists() }) {
			kind = "file"
		}
		if kind == "tool_result" {
			if err := f.content(block.Get("content")); err != nil {
				return err
			}
			continue
		}
		if !slices.ContainsFunc(media, func(word string) bool { return strings.Contains(kind, word) }) ||
			!namesAddress(block) {
			continue
		}
		f.found(strings.TrimSuffix(strings.TrimPrefix(kind, "input_"), "_url") + " by URL")
		form := f.protocol.TextForm
		if strings.HasPrefix(kind, "input_") {
			form = `{"type":"input_text","text":%q}`
		}
		start, end := block.Span()
		f.edits = append(f.edits, edit{start, end, fmt.Appendf(nil, form, removedText)})
	}
	return nil
}

// removedText replaces content that would have been fetched.
const removedText = "(fit took out what the model's vendor would have fetched from an address)"

// namesAddress reports whether a block of content has an address, at any depth. A data URL is not
// an address.
func namesAddress(v jsontape.Value) bool {
	if text := v.Text(); text != "" {
		return strings.Contains(text[:min(len(text), 32)], "://")
	}
	for _, member := range v.Members() {
		if namesAddress(member) {
			return true
		}
	}
	return slices.ContainsFunc(slices.Collect(v.Elements()), namesAddress)
}

// edited returns the text of a value with its edits, which are in order and do not overlap.
func (f *finder) edited(value jsontape.Value, edits []edit) []byte {
	at, end := value.Span()
	var out []byte
	for _, e := range edits {
		out = append(append(out, f.text[at:e.start]...), e.text...)
		at = e.end
	}
	return append(out, f.text[at:end]...)
}

// named is a tool, or the choice of one.
type named struct {
	Type     string `json:"type"`
	Name     string `json:"name"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
}

func (n *named) name() string { return cmp.Or(n.Name, n.Function.Name) }

// withoutChoice removes the choice of a removed tool from the members of a request, which would be
// refused with it.
func withoutChoice(members, left [][]byte) [][]byte {
	return slices.DeleteFunc(members, func(member []byte) bool {
		raw, found := bytes.CutPrefix(member, []byte(`"tool_choice":`))
		return found && isGone(raw, left)
	})
}

// isGone reports whether the chosen tool was removed.
func isGone(raw []byte, left [][]byte) bool {
	var choice named
	if json.Unmarshal(raw, &choice) != nil { // a word, such as auto, or nothing
		return len(left) == 0
	}
	if choice.name() == "" {
		return len(left) == 0 || choice.Type != "" && !slices.Contains([]string{"auto", "any", "none"}, choice.Type)
	}
	return !slices.ContainsFunc(left, func(raw []byte) bool {
		var tool named
		return json.Unmarshal(raw, &tool) == nil && tool.name() == choice.name()
	})
}
