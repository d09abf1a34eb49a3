package scripted

import (
	"encoding/json"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// fields are the fields of a tool's input by name, according to its schema; nil where the client
// does not say.
type fields map[string]field

// field is one field of an input.
type field struct {
	kind  string // the type in JSON Schema: string, number, array, …
	about string // the description
	items fields // of the objects in an array
}

// maxSchemaDepth stops at arrays of objects with arrays of objects.
const maxSchemaDepth = 4

// schemaFields reads a JSON Schema of an object.
func schemaFields(schema json.RawMessage) fields { return schemaFieldsDepth(schema, maxSchemaDepth) }

func schemaFieldsDepth(schema json.RawMessage, depth int) fields {
	var object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if depth == 0 || json.Unmarshal(schema, &object) != nil || len(object.Properties) == 0 {
		return nil
	}
	all := fields{}
	for name, raw := range object.Properties {
		var property struct {
			Type        any             `json:"type"`
			Description string          `json:"description"`
			Items       json.RawMessage `json:"items"`
		}
		if json.Unmarshal(raw, &property) != nil { // true and false are schemas, too
			all[name] = field{}
			continue
		}
		kind, _ := property.Type.(string)
		kind = strings.ToLower(kind) // Google's own schemas have types in capitals
		all[name] = field{kind: kind, about: property.Description, items: schemaFieldsDepth(property.Items, depth-1)}
	}
	return all
}

// A role is what a field is for; its names are the usual names of such fields, in either way to
// write two words. If a client does not list its fields, the first name is tried.
type role []string

var (
	roleCommand = role{"command", "cmd"}
	rolePath    = role{"file_path", "path", "filename", "file"}
	roleContent = role{"content", "contents", "text", "file_text"}
	roleBefore  = role{"old_string", "old_text", "old_str"}
	roleAfter   = role{"new_string", "new_text", "new_str"}
	rolePattern = role{"pattern", "regex", "query"}
	rolePlace   = role{"path", "directory", "dir"}
	rolePatch   = role{"input", "patch"}
	// roleCommands and roleFiles are lists, of tools that do several things at once.
	roleCommands = role{"commands"}
	roleFiles    = role{"files"}
	// roleTimeout is when a command is killed, rolePatience how long a client waits for one before
	// it answers with the output so far.
	roleTimeout  = role{"timeout", "timeout_ms", "timeout_seconds"}
	rolePatience = role{"yield_time_ms"}
	// roleReason explains a call to people, roleDetail how much of a finding is shown.
	roleReason = role{"description"}
	// roleInstruction describes an edit in words.
	roleInstruction = role{"instruction"}
	roleDetail      = role{"output_mode"}
)

// find returns the name of the field that has a role.
func (f fields) find(r role) (string, bool) {
	for _, name := range r {
		for _, spelled := range []string{name, camelCase(name)} {
			if _, ok := f[spelled]; ok {
				return spelled, true
			}
		}
	}
	return "", false
}

var underscored = lazyregexp.New(`_[a-z]`)

func camelCase(name string) string {
	return underscored.Get().ReplaceAllStringFunc(name, func(part string) string { return strings.ToUpper(part[1:]) })
}

// list returns the name and the fields of the first array whose objects have all of the roles.
func (f fields) list(roles ...role) (string, fields, bool) {
	best := ""
	for name, candidate := range f {
		if candidate.kind == "array" && candidate.items.have(roles...) && (best == "" || name < best) {
			best = name
		}
	}
	return best, f[best].items, best != ""
}

// have reports whether there is a field for every role.
func (f fields) have(roles ...role) bool {
	for _, r := range roles {
		if _, ok := f.find(r); !ok {
			return false
		}
	}
	return true
}

// convertUnit converts milliseconds to the unit of a field, which its name or description gives.
func (f field) convertUnit(name string, ms int) int {
	about := strings.ToLower(name + " " + f.about)
	if strings.Contains(about, "second") && !strings.Contains(about, "millisecond") {
		return (ms + 999) / 1000
	}
	return ms
}

// takesRelative reports whether a path may be relative to the working directory.
func (f field) takesRelative() bool {
	about := strings.ToLower(f.about)
	return strings.Contains(about, "relative") && !strings.Contains(about, "not supported")
}

// args is the input of a tool under construction.
type args map[string]any

// set sets the field with a role, which every call needs.
func (t offeredTool) set(into args, r role, value any) {
	if t.input == nil {
		into[r[0]] = value
	}
	t.add(into, r, value)
}

// add sets the field with a role, if the client has one.
func (t offeredTool) add(into args, r role, value any) {
	if name, ok := t.input.find(r); ok {
		into[name] = value
	}
}
