package scripted

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"
)

// toolCall is a call as it goes on the wire.
type toolCall struct {
	name      string
	namespace string
	custom    bool // a freeform tool, whose input is text
	arguments string
}

// flatName is the name in protocols without namespaces.
func (t toolCall) flatName() string {
	return offeredTool{name: t.name, namespace: t.namespace}.flatName()
}

// args is the input of a tool under construction.
type args map[string]any

// resolve turns a neutral call into one of the tools that the request offers.
func (c conversation) resolve(call Call) toolCall {
	switch call.verbs()[0] {
	case "bash":
		return c.shell(call.Bash, call.TimeoutMs)
	case "read":
		return c.read(call)
	case "write":
		return c.write(call)
	case "edit":
		return c.edit(call)
	case "glob":
		return c.glob(call)
	case "grep":
		return c.grep(call)
	case "mcp":
		return c.mcp(call)
	case "first_of":
		return c.firstOf(call.FirstOf)
	default:
		return c.exact(call)
	}
}

// use makes a call of an offered tool, with those of the arguments that its schema knows.
func (t offeredTool) use(arguments args) toolCall {
	kept := args{}
	for name, value := range arguments {
		if t.properties == nil || t.properties[name] {
			kept[name] = value
		}
	}
	return toolCall{name: t.name, namespace: t.namespace, arguments: string(marshal(kept))}
}

// marshal encodes maps of strings and numbers, which always works. It leaves <, > and & as they are: a model writes commands the way people do.
func marshal(value any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return []byte("{}")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// absolute is the path for tools that want absolute ones.
func (c conversation) absolute(p string) string {
	if path.IsAbs(p) || c.cwd() == "" {
		return p
	}
	return path.Join(c.cwd(), p)
}

// codexYieldMs makes Codex wait as long as it can for a command instead of answering with a session id.
const codexYieldMs = 30000

// shell runs a command with whatever the client has for it.
func (c conversation) shell(command string, timeoutMs int) toolCall {
	if t, ok := c.find("Bash"); ok {
		arguments := args{"command": command, "description": "Run a command"}
		if timeoutMs > 0 {
			arguments["timeout"] = timeoutMs
		}
		return t.use(arguments)
	}
	if t, ok := c.find("bash"); ok {
		arguments := args{"command": command}
		if timeoutMs > 0 {
			arguments["timeout"] = (timeoutMs + 999) / 1000 // pi counts in seconds
		}
		return t.use(arguments)
	}
	if t, ok := c.find("exec_command"); ok {
		return t.use(args{"cmd": command, "yield_time_ms": codexYieldMs})
	}
	if t, ok := c.codeMode(); ok {
		input := string(marshal(args{"cmd": command, "yield_time_ms": codexYieldMs}))
		return t.javascript("const r = await tools.exec_command(" + input + ");\ntext(r.output);\ntext(\"exit code: \" + r.exit_code);\n")
	}
	if t, ok := c.find("shell_command"); ok {
		return t.use(withTimeout(args{"command": command}, timeoutMs))
	}
	if t, ok := c.find("shell"); ok {
		return t.use(withTimeout(args{"command": []string{"bash", "-c", command}}, timeoutMs))
	}
	return toolCall{name: "Bash", arguments: string(marshal(args{"command": command}))}
}

func withTimeout(arguments args, timeoutMs int) args {
	if timeoutMs > 0 {
		arguments["timeout_ms"] = timeoutMs
	}
	return arguments
}

// codeMode finds Codex's exec, a freeform tool whose input is JavaScript that calls the other tools.
func (c conversation) codeMode() (offeredTool, bool) {
	for _, t := range c.tools {
		if t.kind == "custom" && t.name == "exec" {
			return t, true
		}
	}
	return offeredTool{}, false
}

func (t offeredTool) javascript(code string) toolCall {
	return toolCall{name: t.name, namespace: t.namespace, custom: true, arguments: code}
}

func (c conversation) read(call Call) toolCall {
	if t, ok := c.find("Read"); ok {
		return t.use(args{"file_path": c.absolute(call.Read)})
	}
	if t, ok := c.find("read"); ok {
		return t.use(args{"path": call.Read})
	}
	return c.shell("cat -- "+quote(call.Read), 0)
}

func (c conversation) write(call Call) toolCall {
	if t, ok := c.find("Write"); ok {
		return t.use(args{"file_path": c.absolute(call.Write), "content": call.Content})
	}
	if t, ok := c.find("write"); ok {
		return t.use(args{"path": call.Write, "content": call.Content})
	}
	// A patch always ends its lines, so only whole lines can be written by one.
	if strings.HasSuffix(call.Content, "\n") {
		if patched, ok := c.patch(addFilePatch(call.Write, call.Content)); ok {
			return patched
		}
	}
	return c.shell(writeCommand(call.Write, call.Content), 0)
}

func (c conversation) edit(call Call) toolCall {
	if t, ok := c.find("Edit"); ok {
		return t.use(args{"file_path": c.absolute(call.Edit), "old_string": call.Old, "new_string": call.New})
	}
	if t, ok := c.find("edit"); ok {
		return t.use(args{"path": call.Edit, "edits": []args{{"oldText": call.Old, "newText": call.New}}})
	}
	if before, after, ok := wholeLines(c.results(), call.Old, call.New); ok {
		if patched, ok := c.patch(updateFilePatch(call.Edit, before, after)); ok {
			return patched
		}
	}
	return c.shell(editCommand(call.Edit, call.Old, call.New), 0)
}

// patch applies a patch with Codex's tool for it, which is freeform, a function, or reached by JavaScript.
func (c conversation) patch(text string) (toolCall, bool) {
	if t, ok := c.find("apply_patch"); ok {
		if t.kind == "custom" {
			return toolCall{name: t.name, namespace: t.namespace, custom: true, arguments: text}, true
		}
		return t.use(args{"input": text}), true
	}
	if t, ok := c.codeMode(); ok {
		return t.javascript("text(await tools.apply_patch(" + string(marshal(text)) + "));\n"), true
	}
	return toolCall{}, false
}

func (c conversation) glob(call Call) toolCall {
	for _, name := range []string{"Glob", "find"} {
		if t, ok := c.find(name); ok {
			return t.use(c.withPlace(args{"pattern": call.Glob}, call.In))
		}
	}
	return c.shell(globCommand(call.Glob, call.In), 0)
}

func (c conversation) grep(call Call) toolCall {
	for _, name := range []string{"Grep", "grep"} {
		if t, ok := c.find(name); ok {
			return t.use(c.withPlace(args{"pattern": call.Grep, "output_mode": "content"}, call.In))
		}
	}
	return c.shell(grepCommand(call.Grep, call.In), 0)
}

func (c conversation) withPlace(arguments args, in string) args {
	if in != "" {
		arguments["path"] = c.absolute(in)
	}
	return arguments
}

// findMCP looks up the tool of an MCP server under the names clients give such tools: mcp__server__tool, a namespace mcp__server, or the bare name.
func (c conversation) findMCP(server, tool string) (offeredTool, bool) {
	for _, t := range c.tools {
		if flat := t.flatName(); flat == "mcp__"+server+"__"+tool || flat == server+"__"+tool || flat == server+"_"+tool {
			return t, true
		}
	}
	for _, t := range c.tools {
		if t.namespace == "" && t.name == tool {
			return t, true
		}
	}
	return offeredTool{}, false
}

func (c conversation) mcp(call Call) toolCall {
	server, tool, _ := strings.Cut(call.MCP, "/")
	input := objectText(call.Input)
	if t, ok := c.findMCP(server, tool); ok {
		return toolCall{name: t.name, namespace: t.namespace, arguments: input}
	}
	if t, ok := c.codeMode(); ok {
		name := "mcp__" + identifier(server) + "__" + identifier(tool)
		return t.javascript("const r = await tools." + name + "(" + input + ");\n" +
			"text((r.content || []).map((part) => part.text || \"\").join(\"\\n\"));\n")
	}
	// Clients that keep definitions back until they are searched for take the call all the same. Codex wants it in a namespace.
	if _, ok := c.find("tool_search"); ok {
		return toolCall{name: tool, namespace: "mcp__" + server, arguments: input}
	}
	return toolCall{name: "mcp__" + server + "__" + tool, arguments: input}
}

// identifier writes a name the way Codex makes it one of JavaScript.
func identifier(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, name)
}

func objectText(input json.RawMessage) string {
	if len(input) == 0 {
		return "{}"
	}
	return string(input)
}

// exact makes the call as the script has it, offered or not.
func (c conversation) exact(call Call) toolCall {
	t, ok := c.find(call.Tool)
	if !ok {
		t = offeredTool{name: call.Tool, kind: "function"}
	}
	made := toolCall{name: t.name, namespace: t.namespace, custom: t.kind == "custom", arguments: objectText(call.Input)}
	if call.Raw != "" {
		made.arguments = call.Raw
	}
	return made
}

// firstOf makes the first call whose tool is offered, or the last of them.
func (c conversation) firstOf(calls []Call) toolCall {
	for _, call := range calls {
		switch {
		case call.Tool != "" && !c.offers(call.Tool), call.MCP != "" && !c.offers(call.MCP):
			continue
		}
		return c.resolve(call)
	}
	return c.resolve(calls[len(calls)-1])
}
