package scripted

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/fit-eval/fit/internal/jsonenc"
)

// toolCall is a call in its wire form.
type toolCall struct {
	name      string
	namespace string
	custom    bool // a freeform tool, whose input is text
	arguments string
}

// flatName returns the name in protocols without namespaces.
func (t toolCall) flatName() string {
	return offeredTool{name: t.name, namespace: t.namespace}.flatName()
}

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

// job is something that the tools of an agent do. Its names are the usual names of such tools,
// without case and underscores, in order of preference; a tool must have a field for everything
// that the job needs.
type job struct {
	names []string
	needs []role
}

var (
	jobShell = job{[]string{
		"bash", "execcommand", "shellcommand", "shell", "runcommand", "runshellcommand",
		"executecommand", "terminal",
	}, []role{roleCommand}}
	jobShells = job{[]string{"runcommands"}, []role{roleCommands}}
	jobRead   = job{[]string{"read", "readfile", "viewfile", "view"}, []role{rolePath}}
	jobReads  = job{[]string{"readfiles"}, []role{roleFiles}}
	jobWrite  = job{[]string{"write", "writefile", "createfile", "create"}, []role{rolePath, roleContent}}
	jobEdit   = job{[]string{"edit", "editfile", "replace", "strreplace", "editor"}, []role{rolePath}}
	jobPatch  = job{names: []string{"applypatch"}}
	jobGlob   = job{[]string{"glob", "find", "findfiles"}, []role{rolePattern}}
	jobGrep   = job{[]string{"grep", "searchfiles"}, []role{rolePattern}}
)

// toolFor finds the tool that does a job.
func (c conversation) toolFor(j job) (offeredTool, bool) {
	for _, name := range j.names {
		for _, t := range c.tools {
			plain := strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(t.name))
			if plain == name && (t.input == nil || t.input.have(j.needs...)) {
				return t, true
			}
		}
	}
	return offeredTool{}, false
}

// use makes a call of an offered tool.
func (t offeredTool) use(arguments args) toolCall {
	if t.runner != nil {
		return t.runner.javascript(t.name, string(marshal(arguments)))
	}
	return toolCall{name: t.name, namespace: t.namespace, arguments: string(marshal(arguments))}
}

// marshal encodes maps of strings and numbers, which always works. It leaves <, > and & as they
// are: a model writes commands the way people do.
func marshal(value any) []byte {
	encoded, err := jsonenc.Marshal(value)
	if err != nil {
		return []byte("{}")
	}
	return encoded
}

// absolute returns the path for tools that want absolute ones.
func (c conversation) absolute(p string) string {
	if path.IsAbs(p) || c.cwd() == "" {
		return p
	}
	return path.Join(c.cwd(), p)
}

// file returns a path for a tool that does something to a file.
func (c conversation) file(t offeredTool, p string) args {
	arguments := args{}
	if name, ok := t.input.find(rolePath); !ok || !t.input[name].takesRelative() {
		p = c.absolute(p)
	}
	t.set(arguments, rolePath, p)
	return arguments
}

// patienceMs is as long as clients wait for a command before they answer that it is still running.
const patienceMs = 30000

// shell runs a command with the client's tool for it.
func (c conversation) shell(command string, timeoutMs int) toolCall {
	if t, ok := c.toolFor(jobShells); ok {
		arguments := args{}
		t.set(arguments, roleCommands, []string{command})
		return t.use(arguments)
	}
	t, ok := c.toolFor(jobShell)
	if !ok {
		t = offeredTool{name: "Bash", kind: "function"}
	}
	arguments := args{}
	var line any = command
	if name, ok := t.input.find(roleCommand); ok && t.input[name].kind == "array" {
		line = []string{"bash", "-c", command}
	}
	t.set(arguments, roleCommand, line)
	if name, ok := t.input.find(roleTimeout); ok && timeoutMs > 0 {
		arguments[name] = t.input[name].convertUnit(name, timeoutMs)
	}
	t.add(arguments, rolePatience, patienceMs)
	t.add(arguments, roleReason, "Run a command")
	return t.use(arguments)
}

func (c conversation) read(call Call) toolCall {
	if t, ok := c.toolFor(jobRead); ok {
		return t.use(c.file(t, call.Read))
	}
	if t, ok := c.toolFor(jobReads); ok {
		arguments := args{}
		t.set(arguments, roleFiles, []args{{rolePath[1]: c.absolute(call.Read)}})
		return t.use(arguments)
	}
	return c.shell("cat -- "+quote(call.Read), 0)
}

func (c conversation) write(call Call) toolCall {
	if t, ok := c.toolFor(jobWrite); ok {
		arguments := c.file(t, call.Write)
		t.set(arguments, roleContent, call.Content)
		return t.use(arguments)
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
	if t, ok := c.toolFor(jobEdit); ok {
		if arguments, ok := t.replacement(c.file(t, call.Edit), call); ok {
			return t.use(arguments)
		}
	}
	if before, after, ok := wholeLines(c.results(), call.Old, call.New); ok {
		if patched, ok := c.patch(updateFilePatch(call.Edit, before, after)); ok {
			return patched
		}
	}
	return c.shell(editCommand(call.Edit, call.Old, call.New), 0)
}

// replacement adds the old and the new text to the input of a tool that edits: as two fields, or as
// the only one of a list of edits.
func (t offeredTool) replacement(arguments args, call Call) (args, bool) {
	if t.input == nil || t.input.have(roleBefore, roleAfter) {
		t.set(arguments, roleBefore, call.Old)
		t.set(arguments, roleAfter, call.New)
		t.add(arguments, roleInstruction, "Replace the text")
		return arguments, true
	}
	name, items, ok := t.input.list(roleBefore, roleAfter)
	if !ok {
		return nil, false
	}
	one, edit := offeredTool{input: items}, args{}
	one.set(edit, roleBefore, call.Old)
	one.set(edit, roleAfter, call.New)
	arguments[name] = []args{edit}
	return arguments, true
}

// patch applies a patch with a tool for it, which is freeform, a function, or reached by code.
func (c conversation) patch(text string) (toolCall, bool) {
	t, ok := c.toolFor(jobPatch)
	switch {
	case !ok:
		return toolCall{}, false
	case t.kind == "custom" && t.runner != nil:
		return t.runner.javascript(t.name, string(marshal(text))), true
	case t.kind == "custom":
		return toolCall{
			name:      t.name,
			namespace: t.namespace,
			custom:    true,
			arguments: text,
		}, true
	}
	arguments := args{}
	t.set(arguments, rolePatch, text)
	return t.use(arguments), true
}

func (c conversation) glob(call Call) toolCall {
	if t, ok := c.toolFor(jobGlob); ok {
		return t.use(c.search(t, call.Glob, call.In))
	}
	return c.shell(globCommand(call.Glob, call.In), 0)
}

func (c conversation) grep(call Call) toolCall {
	if t, ok := c.toolFor(jobGrep); ok {
		return t.use(c.search(t, call.Grep, call.In))
	}
	return c.shell(grepCommand(call.Grep, call.In), 0)
}

// search returns the input of a tool that looks for a pattern, everywhere or in one place.
func (c conversation) search(t offeredTool, pattern, in string) args {
	arguments := args{}
	t.set(arguments, rolePattern, pattern)
	t.add(arguments, roleDetail, "content")
	if in != "" {
		t.set(arguments, rolePlace, c.absolute(in))
	}
	return arguments
}

// findMCP looks up the tool of an MCP server under the names clients give such tools:
// mcp__server__tool, with fewer underscores or a hyphen, a namespace mcp__server, or the bare name.
func (c conversation) findMCP(server, tool string) (offeredTool, bool) {
	for _, t := range c.tools {
		switch strings.TrimPrefix(strings.TrimPrefix(t.flatName(), "mcp__"), "mcp_") {
		case server + "__" + tool, server + "_" + tool, server + "-" + tool:
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
	if t, ok := c.findMCP(server, tool); ok && t.runner == nil {
		return toolCall{name: t.name, namespace: t.namespace, arguments: input}
	}
	if t, ok := c.runner(); ok { // whether it is declared or not
		return t.javascript("mcp__"+identifier(server)+"__"+identifier(tool), input)
	}
	// Clients that keep definitions back until they are searched for accept the call anyway, in a
	// namespace.
	if _, ok := c.find("tool_search"); ok {
		return toolCall{name: tool, namespace: "mcp__" + server, arguments: input}
	}
	return toolCall{name: "mcp__" + server + "__" + tool, arguments: input}
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
	made := toolCall{
		name:      t.name,
		namespace: t.namespace,
		custom:    t.kind == "custom",
		arguments: objectText(call.Input),
	}
	if call.Raw != "" {
		made.arguments = call.Raw
	}
	if t.runner != nil {
		return t.runner.javascript(t.name, made.arguments)
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
