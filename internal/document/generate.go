package document

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/jsonenc"
)

// describer is a type that knows its own JSON Schema: one that is written differently from how Go
// holds it, such as a duration. Documents are checked for type, enum, pattern, minimum, maximum,
// items, properties, required and additionalProperties.
type describer interface {
	JSONSchema() map[string]any
}

// SchemaOf returns the JSON Schema of the files that a struct is decoded from. Fields are known by
// their yaml tag; unknown keys are not allowed. More tags say more:
//
//	doc:"what it means"  enum:"a,b"  pattern:"^[a-z]+$"  min:"1"  max:"10"  required:"true"
//
// An enum or a pattern of a list is about its elements. An inlined map, map[string]any with the tag
// yaml:",inline", allows any other keys.
func SchemaOf(title string, value any) ([]byte, error) {
	schema, err := describe(reflect.TypeOf(value))
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", title, err)
	}
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = title
	var out bytes.Buffer
	if err := jsonenc.WriteIndented(&out, schema); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", title, err)
	}
	return out.Bytes(), nil
}

func describe(t reflect.Type) (map[string]any, error) {
	if t == nil {
		return nil, fmt.Errorf("no type")
	}
	if d, ok := reflect.Zero(t).Interface().(describer); ok && t.Kind() != reflect.Pointer {
		return d.JSONSchema(), nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return describe(t.Elem())
	case reflect.Struct:
		return describeStruct(t)
	case reflect.Slice, reflect.Array:
		items, err := describe(t.Elem())
		return map[string]any{"type": "array", "items": items}, err
	case reflect.Map:
		values, err := describe(t.Elem())
		return map[string]any{"type": "object", "additionalProperties": values}, err
	case reflect.String:
		return map[string]any{"type": "string"}, nil
	case reflect.Bool:
		return map[string]any{"type": "boolean"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer"}, nil
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}, nil
	case reflect.Interface:
		return map[string]any{}, nil
	default:
		return nil, fmt.Errorf("a %s cannot be described", t)
	}
}

func describeStruct(t reflect.Type) (map[string]any, error) {
	properties := map[string]any{}
	var required []string
	open := false
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if !field.IsExported() || name == "-" {
			continue
		}
		if strings.Contains(options, "inline") && field.Type.Kind() == reflect.Map {
			open = true
			continue
		}
		if strings.Contains(options, "inline") {
			inner, err := describe(field.Type)
			if err != nil {
				return nil, err
			}
			maps.Copy(properties, inner["properties"].(map[string]any))
			needed, _ := inner["required"].([]string)
			required = append(required, needed...)
			continue
		}
		if name == "" {
			name = strings.ToLower(field.Name)
		}
		property, err := describe(field.Type)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := addTags(property, field.Tag); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		properties[name] = property
		if field.Tag.Get("required") == "true" {
			required = append(required, name)
		}
	}
	schema := map[string]any{"type": "object", "properties": properties}
	if !open {
		schema["additionalProperties"] = false
	}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema, nil
}

// addTags adds what the tags of a field say to its schema.
func addTags(property map[string]any, tag reflect.StructTag) error {
	if doc := tag.Get("doc"); doc != "" {
		property["description"] = doc
	}
	inner := property
	if items, ok := property["items"].(map[string]any); ok {
		inner = items
	}
	if enum := tag.Get("enum"); enum != "" {
		inner["enum"] = strings.Split(enum, ",")
	}
	if pattern := tag.Get("pattern"); pattern != "" {
		inner["pattern"] = pattern
	}
	for key, keyword := range map[string]string{"min": "minimum", "max": "maximum"} {
		text := tag.Get(key)
		if text == "" {
			continue
		}
		bound, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("tag %s: %w", key, err)
		}
		inner[keyword] = bound
	}
	return nil
}
