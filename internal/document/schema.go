package document

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"

	"github.com/fit-eval/fit/internal/near"
)

// Schema is a JSON Schema that documents can be checked against.
type Schema struct{ root *jsonschema.Schema }

// CompileSchema reads a JSON Schema.
func CompileSchema(name string, source []byte) (*Schema, error) {
	var root jsonschema.Schema
	if err := json.Unmarshal(source, &root); err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	if _, err := root.Resolve(nil); err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	return &Schema{&root}, nil
}

// schemas are those of the types that documents were checked against, by reflect.Type: facts of the
// program, each made by the first caller that needs it.
var schemas sync.Map

// Conforms checks the document against the schema of the struct that it is to be decoded into. All
// problems, up to a bound, are reported, joined, each an *Error with its position, in the order of
// the file.
func (d *Document) Conforms(value any) error {
	kind := reflect.TypeOf(value)
	schema, known := schemas.Load(kind)
	if !known {
		source, err := SchemaOf(kind.String(), value)
		if err != nil {
			return err
		}
		if schema, err = CompileSchema(kind.String(), source); err != nil {
			return err
		}
		schemas.Store(kind, schema)
	}
	return d.validate(schema.(*Schema))
}

// JSON returns the document as JSON.
func (d *Document) JSON() ([]byte, error) {
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	return json.Marshal(jsonValue(value))
}

func (d *Document) validate(schema *Schema) error {
	var value any
	if err := d.Decode(&value); err != nil {
		return err
	}
	check := checker{document: d}
	check.value(schema.root, jsonValue(value), nil)
	slices.SortStableFunc(check.found, func(a, b *Error) int { return cmp.Or(a.Line-b.Line, a.Col-b.Col) })
	joined := make([]error, min(len(check.found), maxProblems))
	for i := range joined {
		joined[i] = check.found[i]
	}
	if check.full() {
		joined = append(joined, &Error{File: d.name, Msg: "there may be more problems; fix these first"})
	}
	return errors.Join(joined...)
}

// checker descends into a document along its schema. The library stops at the first problem and
// does not say where it is; so the descent is done here, for what SchemaOf and describers say.
type checker struct {
	document *Document
	found    []*Error
}

// full reports whether no more problems are looked for.
func (c *checker) full() bool { return len(c.found) >= maxProblems }

func (c *checker) value(schema *jsonschema.Schema, value any, path []string) {
	if c.full() {
		return
	}
	if message := broken(schema, value); message != "" {
		c.found = append(c.found, c.document.ErrorAt(path, "%s", message))
		return
	}
	switch value := value.(type) {
	case map[string]any:
		c.object(schema, value, path)
	case []any:
		for i, item := range value {
			if schema.Items != nil {
				c.value(schema.Items, item, append(slices.Clone(path), strconv.Itoa(i)))
			}
		}
	}
}

func (c *checker) object(schema *jsonschema.Schema, object map[string]any, path []string) {
	for _, name := range schema.Required {
		if _, has := object[name]; !has {
			c.found = append(c.found, c.document.ErrorAt(path, "the setting %s is missing", name))
		}
	}
	var unknown []string
	for _, key := range slices.Sorted(maps.Keys(object)) {
		property, known := schema.Properties[key]
		switch {
		case known:
			c.value(property, object[key], append(slices.Clone(path), key))
		case isFalse(schema.AdditionalProperties):
			unknown = append(unknown, key)
		case schema.AdditionalProperties != nil:
			c.value(schema.AdditionalProperties, object[key], append(slices.Clone(path), key))
		}
	}
	unknown = unknown[:min(len(unknown), maxProblems)]
	c.found = append(c.found, c.document.unknownKeys(path, unknown, slices.Sorted(maps.Keys(schema.Properties)))...)
}

// isFalse reports whether a schema is the one that nothing fits: "additionalProperties": false.
func isFalse(schema *jsonschema.Schema) bool { return schema != nil && schema.Not != nil }

func hasType(want string, value any) bool {
	got := typeOf(value)
	number, _ := value.(float64)
	return got == want || want == "number" && got == "integer" || want == "integer" && got == "number" &&
		number == float64(int64(number))
}

func typeOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case int, int64, uint64:
		return "integer"
	case float64:
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// ErrorAt makes an error about the value at a path of keys and indices, or about the nearest one
// around it that exists.
func (d *Document) ErrorAt(path []string, format string, args ...any) *Error {
	line, col := d.locate(path)
	name := strings.Join(path, ".")
	if name != "" {
		name += ": "
	}
	return d.at(line, col, "%s%s", name, fmt.Sprintf(format, args...))
}

// unknownKeys makes one error for each key that a mapping must not have, at the key's position, and
// lists the allowed keys.
func (d *Document) unknownKeys(path, keys, allowed []string) []*Error {
	list := ""
	if len(allowed) > 0 {
		list = "; there are " + strings.Join(allowed, ", ")
	}
	mapping := d.find(path)
	var all []*Error
	for _, key := range keys {
		line, col := d.locate(path)
		if node, _ := member(mapping, key); node != nil {
			line, col = node.Line, node.Column
		}
		all = append(all, d.at(line, col, "%s: there is no such setting%s%s",
			strings.Join(append(slices.Clone(path), key), "."), near.Question(key, allowed), list))
	}
	return all
}

// locate finds the line and column of a value, or of the nearest one around it that exists.
func (d *Document) locate(path []string) (line, col int) {
	if d.root.Kind == 0 || len(d.root.Content) == 0 {
		return 1, 1
	}
	node := d.find(path)
	return node.Line, node.Column
}

// find returns the node of a value, or of the nearest one around it that exists. The document must
// not be empty.
func (d *Document) find(path []string) *yaml.Node {
	node := d.root.Content[0]
	for _, step := range path {
		next := child(node, step)
		if next == nil {
			break
		}
		node = next
	}
	return node
}

// member returns the nodes of a key of a mapping and of its value, nil if there is no such key.
func member(mapping *yaml.Node, key string) (keyNode, value *yaml.Node) {
	if mapping.Kind == yaml.AliasNode {
		mapping = mapping.Alias
	}
	for i := 0; mapping.Kind == yaml.MappingNode && i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i], mapping.Content[i+1]
		}
	}
	return nil, nil
}

func child(node *yaml.Node, step string) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind != yaml.SequenceNode {
		_, value := member(node, step)
		return value
	}
	if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Content) {
		return node.Content[i]
	}
	return nil
}

// jsonValue turns what YAML decodes to into what JSON would have decoded to.
func jsonValue(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = jsonValue(inner)
		}
		return v
	case map[any]any:
		object := make(map[string]any, len(v))
		for key, inner := range v {
			object[fmt.Sprint(key)] = jsonValue(inner)
		}
		return object
	case []any:
		for i, inner := range v {
			v[i] = jsonValue(inner)
		}
		return v
	case int, int64, uint64, float64, string, bool, nil:
		return v
	default:
		return fmt.Sprint(v)
	}
}
