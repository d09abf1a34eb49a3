package acp

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
)

// The states of a tool call.
const (
	statusPending   = "pending"
	statusRunning   = "in_progress"
	statusCompleted = "completed"
	statusFailed    = "failed"
)

// Where the tool's own name is, for agents that do not send it as such.
const (
	nameIsTitle     = "title"        // the title of the first message about the call
	nameStartsTitle = "title-prefix" // the title up to the first colon
	nameStartsID    = "id-prefix"    // the call's id up to the first two underscores
)

// call is the state of a tool call. It is assembled from all messages: some agents announce a call
// late, twice or not at all.
type call struct {
	id             string
	name, kind     string
	title          string
	input          []byte // JSON; empty if none was seen
	paths          []string
	output         []byte // the last that was shown
	answerID       string // the model's answer that it belongs to
	reported, done bool
}

// calls are the calls of the prompt that runs, in order.
type calls struct {
	byID  map[string]*call
	order []*call
}

// maxCalls bounds the memory for a prompt with very many calls.
const maxCalls = 4096

func newCalls() calls { return calls{byID: map[string]*call{}} }

func (c *calls) known(id string) *call { return c.byID[id] }

func (c *calls) add(id string) *call {
	if len(c.order) >= maxCalls {
		kept := c.order[:0]
		for _, old := range c.order {
			if old.done {
				delete(c.byID, old.id)
			} else {
				kept = append(kept, old)
			}
		}
		clear(c.order[len(kept):])
		if c.order = kept; len(kept) >= maxCalls {
			c.reset()
		}
	}
	added := &call{id: strings.Clone(id)}
	c.byID[added.id] = added
	c.order = append(c.order, added)
	return added
}

func (c *calls) reset() {
	clear(c.byID)
	clear(c.order)
	c.order = c.order[:0]
}

// tool reads a message about a call.
func (d *decoder) tool(update jsontape.Value, o session.Origin, to *session.Fold) {
	known := d.merge(update, &o, to)
	if known == nil {
		return
	}
	switch update.TextOf("status") {
	case statusCompleted, statusFailed:
		d.finish(known, update, o, to)
	case statusRunning:
		d.reportCall(known, o, to)
	case statusPending:
		if known.kind == "execute" && hasCommand(update.Get("rawInput")) {
			d.reportCall(known, o, to) // a command is complete with its first word
		}
	}
}

// asked handles a request for permission, at which point the input is known.
func (d *decoder) asked(about jsontape.Value, o session.Origin, to *session.Fold) {
	if known := d.merge(about, &o, to); known != nil {
		d.reportCall(known, o, to)
	}
}

// merge adds what a message says to what is known about its call, and returns it.
func (d *decoder) merge(update jsontape.Value, o *session.Origin, to *session.Fold) *call {
	id := update.TextOf("toolCallId")
	if id == "" {
		to.ParseError()
		return nil
	}
	d.flush(to)
	known := d.calls.known(id)
	if known == nil {
		d.active(o, to)
		known = d.calls.add(id)
		known.answerID = d.answerID
	}
	o.MessageID = known.answerID
	if known.done {
		return known
	}
	if known.name == "" {
		known.name = strings.Clone(toolName(d.rules.ToolName, update))
	}
	replace(&known.kind, update.TextOf("kind"))
	replace(&known.title, update.TextOf("title"))
	if !known.reported {
		known.input = raw(known.input, update.Get("rawInput"))
		if paths := pathsOf(update); len(paths) > 0 {
			known.paths = paths
		}
	}
	if to.Watched() {
		if output := contentText(update.Get("content")); output != "" {
			known.output = append(known.output[:0], output...)
		}
	}
	return known
}

func replace(field *string, value string) {
	if value != "" && value != *field {
		*field = strings.Clone(value)
	}
}

// reportCall reports a call once.
func (d *decoder) reportCall(known *call, o session.Origin, to *session.Fold) {
	if known.reported {
		return
	}
	known.reported = true
	told := session.ToolUse{
		ID:        known.id,
		Name:      known.name,
		Canonical: canonicalTool(known.name, known.kind),
		Args:      known.input,
		Paths:     known.paths,
	}
	told.Name = cmp.Or(told.Name, known.kind)
	if told.Canonical == session.ToolBash {
		told.Paths = nil // the directory, not files
		if len(known.input) > 0 {
			told.Command = d.commandsOf(known.input)
		} else if d.rules.ToolName == nameStartsID {
			told.Command = known.title // the agent never shows the input otherwise
		}
	}
	to.ToolCall(o, told)
}

// finish reports the result of a call once.
func (d *decoder) finish(known *call, update jsontape.Value, o session.Origin, to *session.Fold) {
	output := update.Get("rawOutput")
	returned := session.Returned{
		IsError:  update.TextOf("status") == statusFailed || failedOutput(output),
		ExitCode: exitCode(output),
	}
	if to.Watched() {
		if returned.Content = view(known.output); returned.Content == "" {
			returned.Content = outputText(output)
		}
	}
	d.give(known, returned, o, to)
}

// give reports a call, if it was not reported, and its result, once.
func (d *decoder) give(known *call, returned session.Returned, o session.Origin, to *session.Fold) {
	if known.done {
		return
	}
	d.reportCall(known, o, to)
	known.done, d.afterResult = true, true
	returned.CallID = known.id
	to.ToolResult(o, returned)
	known.input, known.output = nil, nil
}

// close ends the calls that are open when the prompt is over. Later messages about them are
// ignored.
func (d *decoder) close(o session.Origin, to *session.Fold) {
	for _, known := range d.calls.order {
		o.MessageID = known.answerID
		d.give(known, session.Returned{IsError: true, Content: "the prompt was over before the call was"}, o, to)
	}
}

// toolName returns the tool's own name, if a message has it.
func toolName(rule string, update jsontape.Value) string {
	if name := cmp.Or(update.TextOf("name"), update.Get("_meta").TextOf("toolName")); name != "" {
		return name
	}
	switch rule {
	case nameIsTitle:
		if update.TextOf("sessionUpdate") == "tool_call" { // later it describes the call
			return update.TextOf("title")
		}
	case nameStartsTitle:
		name, _, _ := strings.Cut(update.TextOf("title"), ":")
		return name
	case nameStartsID:
		if name, _, found := strings.Cut(update.TextOf("toolCallId"), "__"); found {
			return name
		}
	}
	return ""
}

// kinds are the canonical tools of the protocol's kinds.
var kinds = map[string]string{
	"read": session.ToolRead, "edit": session.ToolEdit, "delete": session.ToolEdit, "move": session.ToolEdit,
	"search": session.ToolSearch, "execute": session.ToolBash, "think": session.ToolPlan, "fetch": session.ToolWeb,
	"switch_mode": session.ToolPlan,
}

// canonicalTool maps a tool to the canonical one, by its own name and then by its kind.
func canonicalTool(name, kind string) string {
	if canonical := session.CanonicalTool(name); canonical != session.ToolOther {
		return canonical
	}
	if canonical, known := kinds[kind]; known && !strings.HasPrefix(name, "mcp_") {
		return canonical
	}
	return session.ToolOther
}

func hasCommand(input jsontape.Value) bool {
	return input.Get("command").Exists() || input.Get("commands").Exists()
}

// commandsOf returns the command of an agent that runs several at once; empty if there is one or
// none, which the session finds itself.
func (d *decoder) commandsOf(input []byte) string {
	if !bytes.Contains(input, []byte(`"commands"`)) {
		return ""
	}
	v, _ := d.inputs.Parse(input)
	if v.Get("command").Exists() {
		return ""
	}
	var commands []string
	for command := range v.Get("commands").Elements() {
		if text := command.Text(); text != "" {
			commands = append(commands, text)
		}
	}
	return strings.Join(commands, " && ")
}

// pathsOf returns the files that a call is about.
func pathsOf(update jsontape.Value) []string {
	var paths []string
	for place := range update.Get("locations").Elements() {
		if path := place.TextOf("path"); path != "" {
			paths = append(paths, strings.Clone(path))
		}
	}
	if len(paths) > 0 {
		return paths
	}
	for file := range update.Path("rawInput", "files").Elements() {
		if path := file.TextOf("path"); path != "" {
			paths = append(paths, strings.Clone(path))
		}
	}
	return paths
}

// contentText returns the text among the content of a call.
func contentText(content jsontape.Value) string {
	var texts []string
	for part := range content.Elements() {
		if part.TextOf("type") == "content" {
			if text := part.Get("content").TextOf("text"); text != "" {
				texts = append(texts, text)
			}
		}
	}
	return strings.Join(texts, "\n")
}

// outputText returns the text of a tool's raw output, which is a text, an object in the agent's own
// form, or a list of such objects.
func outputText(output jsontape.Value) string {
	switch output.Kind() {
	case jsontape.String:
		return output.Text()
	case jsontape.Object:
		for _, name := range []string{"output", "content", "text", "result", "stdout", "error"} {
			if text := output.TextOf(name); text != "" {
				return text
			}
		}
	case jsontape.Array:
		var texts []string
		for part := range output.Elements() {
			if text := outputText(part); text != "" {
				texts = append(texts, text)
			}
		}
		return strings.Join(texts, "\n")
	default:
	}
	return ""
}

// failedOutput reports whether a raw output says that the tool failed.
func failedOutput(output jsontape.Value) bool {
	switch output.Kind() {
	case jsontape.Object:
		return output.Get("success").Kind() == jsontape.False
	case jsontape.Array:
		for part := range output.Elements() {
			if part.Kind() == jsontape.Object && failedOutput(part) {
				return true
			}
		}
	default:
	}
	return false
}

// exitPhrase is the text of an agent that has no field for exit codes.
const exitPhrase = "Command exited with code "

// exitCode finds the exit code of a command in its raw output.
func exitCode(output jsontape.Value) *int {
	var found *int
	see := func(v jsontape.Value) {
		if v.Kind() == jsontape.Number {
			found = new(v.Int())
		}
	}
	switch output.Kind() {
	case jsontape.Object:
		see(output.Get("exitCode"))
		see(output.Get("exit_code"))
		see(output.Path("metadata", "exit"))
		for part := range output.Get("contents").Elements() {
			see(part.Get("exitCode"))
		}
		if digits, said := strings.CutPrefix(output.TextOf("error"), exitPhrase); found == nil && said {
			if code, err := strconv.Atoi(digits); err == nil {
				found = &code
			}
		}
	case jsontape.Array:
		for part := range output.Elements() {
			if code := exitCode(part); code != nil && (found == nil || *found == 0) {
				found = code
			}
		}
	default:
	}
	return found
}
