package document

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"go.yaml.in/yaml/v4"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Schema is a compiled JSON Schema.
type Schema struct{ compiled *jsonschema.Schema }

// CompileSchema reads a JSON Schema. It never fetches anything: references must stay inside the schema.
func CompileSchema(name string, source []byte) (*Schema, error) {
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(source))
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(jsonschema.SchemeURLLoader{})
	url := "mem:///" + name
	if err := compiler.AddResource(url, parsed); err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	compiled, err := compiler.Compile(url)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	return &Schema{compiled}, nil
}

// Validate checks the document. All problems are reported, joined, each an *Error with its place, in the order they stand in the file.
func (d *Document) Validate(schema *Schema) error {
	var value any
	if err := d.Decode(&value); err != nil {
		return err
	}
	err := schema.compiled.Validate(jsonValue(value))
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	printer := message.NewPrinter(language.English)
	var all []*Error
	for _, leaf := range leaves(invalid) {
		if unknown, ok := leaf.ErrorKind.(*kind.AdditionalProperties); ok {
			all = append(all, d.unknownKeys(leaf.InstanceLocation, unknown.Properties)...)
			continue
		}
		all = append(all, d.ErrorAt(leaf.InstanceLocation, "%s", leaf.ErrorKind.LocalizedString(printer)))
	}
	slices.SortStableFunc(all, func(a, b *Error) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Col - b.Col
	})
	joined := make([]error, len(all))
	for i, e := range all {
		joined[i] = e
	}
	return errors.Join(joined...)
}

// ErrorAt makes an error about the value at a path of keys and indices, or about the nearest one around it that exists.
func (d *Document) ErrorAt(path []string, format string, args ...any) *Error {
	line, col := d.locate(path)
	name := strings.Join(path, ".")
	if name != "" {
		name += ": "
	}
	return d.at(line, col, "%s%s", name, fmt.Sprintf(format, args...))
}

// unknownKeys makes one error for each key that a mapping must not have, where the key stands.
func (d *Document) unknownKeys(path, keys []string) []*Error {
	mapping := d.find(path)
	var all []*Error
	for _, key := range keys {
		line, col := d.locate(path)
		if node := keyNode(mapping, key); node != nil {
			line, col = node.Line, node.Column
		}
		all = append(all, d.at(line, col, "%s: there is no such setting", strings.Join(append(slices.Clone(path), key), ".")))
	}
	return all
}

// leaves are the errors that say something: the inner ones only collect others.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var all []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		all = append(all, leaves(cause)...)
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

// find returns the node of a value, or of the nearest one around it that exists. The document must not be empty.
func (d *Document) find(path []string) *yaml.Node {
	node := d.content()
	for _, step := range path {
		next := child(node, step)
		if next == nil {
			break
		}
		node = next
	}
	return node
}

func keyNode(mapping *yaml.Node, key string) *yaml.Node {
	if mapping.Kind == yaml.AliasNode {
		mapping = mapping.Alias
	}
	for i := 0; mapping.Kind == yaml.MappingNode && i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i]
		}
	}
	return nil
}

func child(node *yaml.Node, step string) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i]
		}
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
		return fmt.Sprint(v) // timestamps and the like
	}
}
