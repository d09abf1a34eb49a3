package scripted

import (
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// Some clients offer one freeform tool whose input is JavaScript, and declare the tools that it can
// call, in TypeScript, in the tool's description:
//
//	declare const tools: { exec_command(args: {
//	  // Shell command to execute.
//	  cmd: string;
//	}): Promise<unknown>; };
//
// They are offered like all others; a call of one becomes a line of code.

var (
	declaration   = lazyregexp.New(`declare const tools: \{ ([A-Za-z_$][\w$]*)\((args: \{|input: string)`)
	declaredField = lazyregexp.New(`^(\w+)\??: (.*?);?$`)
)

// declared returns the tools that a freeform tool's description declares.
func (t offeredTool) declared(description string) []offeredTool {
	var nested []offeredTool
	for _, at := range declaration.Get().FindAllStringSubmatchIndex(description, -1) {
		tool := offeredTool{name: description[at[2]:at[3]], kind: "function", runner: &t}
		if description[at[4]:at[5]] == "input: string" {
			tool.kind = "custom"
		} else {
			tool.input = declaredFields(description[at[5]:])
		}
		nested = append(nested, tool)
	}
	return nested
}

// declaredFields reads the fields of a declared object up to its closing brace.
func declaredFields(text string) fields {
	all := fields{}
	about := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch comment, isComment := strings.CutPrefix(line, "// "); {
		case strings.HasPrefix(line, "}"):
			return all
		case isComment:
			about = strings.TrimSpace(about + " " + comment)
		default:
			if m := declaredField.FindStringSubmatch(line); m != nil {
				all[m[1]] = field{kind: declaredKind(m[2]), about: about}
			}
			about = ""
		}
	}
	return all
}

func declaredKind(typed string) string {
	switch {
	case strings.HasPrefix(typed, "Array<"), strings.HasSuffix(typed, "[]"):
		return "array"
	case strings.HasPrefix(typed, `"`):
		return "string"
	}
	return typed
}

// runner returns the tool whose input is code that calls other tools.
func (c conversation) runner() (offeredTool, bool) {
	for _, t := range c.tools {
		if t.runner != nil {
			return *t.runner, true
		}
	}
	return offeredTool{}, false
}

// javascript calls a declared tool and shows its result, which is a text, an object with an output,
// or that of an MCP tool.
func (t offeredTool) javascript(name, input string) toolCall {
	return toolCall{
		name:      t.name,
		namespace: t.namespace,
		custom:    true,
		arguments: "const r = await tools." + name + "(" + input + ");\n" +
			"text(Array.isArray(r?.content) ? r.content.map((part) => part.text || \"\").join(\"\\n\") : r?.output " +
			"?? r);\n" +
			"if (r?.exit_code !== undefined) text(\"exit code: \" + r.exit_code);\n",
	}
}

// identifier writes a name as one of JavaScript.
func identifier(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, name)
}
