package versus

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/stats"
)

// documented are the types of a head to head, by the names of their JSON documents.
var documented = map[string]reflect.Type{
	"EvalAgentId":           reflect.TypeFor[session.AgentID](),
	"EnrichedEvent":         reflect.TypeFor[session.EnrichedEvent](),
	"EnrichedSession":       reflect.TypeFor[session.EnrichedSession](),
	"TokenUsage":            reflect.TypeFor[session.TokenUsage](),
	"Milestone":             reflect.TypeFor[session.Milestone](),
	"SystemPromptInjection": reflect.TypeFor[session.SystemPromptInjection](),
	"IntegrityFlag":         reflect.TypeFor[session.IntegrityFlag](),
	"QualityRubric":         reflect.TypeFor[evidence.QualityRubric](),
	"ErrorAttribution":      reflect.TypeFor[evidence.ErrorAttribution](),
	"Task":                  reflect.TypeFor[evidence.Task](),
	"JudgeVerdict":          reflect.TypeFor[judge.JudgeVerdict](),
	"PairwiseVerdict":       reflect.TypeFor[judge.PairwiseVerdict](),
	"BiasCorrection":        reflect.TypeFor[judge.BiasCorrection](),
	"Treatment":             reflect.TypeFor[ledger.Treatment](),
	"EvalReport":            reflect.TypeFor[EvalReport](),
	"Comparison":            reflect.TypeFor[Comparison](),
}

// SchemaNames returns the types that Schema knows, besides those that it is given.
func SchemaNames(more map[string]reflect.Type) []string {
	all := maps.Clone(documented)
	maps.Copy(all, more)
	return slices.Sorted(maps.Keys(all))
}

// Schema returns the JSON Schema of a type, made from its Go struct. more are types of packages
// that this one does not know, and agents are the ids of those that may occur.
func Schema(name string, more map[string]reflect.Type, agents ...string) ([]byte, error) {
	kind, known := documented[name]
	if !known {
		kind, known = more[name]
	}
	if !known {
		return nil, fmt.Errorf("there is no type %q, only %s", name, strings.Join(SchemaNames(more), ", "))
	}
	schema, err := jsonschema.ForType(kind, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		// these have their own MarshalJSON, which their fields do not show
		reflect.TypeFor[stats.AtK]():        {Type: "object"},
		reflect.TypeFor[json.RawMessage]():  {},
		reflect.TypeFor[session.AgentID]():  {Type: "string", Enum: anyOf(agents)},
		reflect.TypeFor[session.Severity](): {Type: "string", Enum: severities},
	}})
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", name, err)
	}
	restrict(kind, schema)
	schema.Schema, schema.Title = "https://json-schema.org/draft/2020-12/schema", name
	return json.MarshalIndent(schema, "", "  ")
}

// few are the fields that are plain texts of a few values, by their types and names.
var few = map[reflect.Type]map[string][]any{
	reflect.TypeFor[evidence.ErrorAttribution](): {
		"category": anyOf(evidence.Categories()),
		"tier":     anyOf(evidence.Tiers()),
		"method":   {evidence.MethodHeuristic, evidence.MethodLLM},
	},
	reflect.TypeFor[judge.JudgeVerdict](): {"result": {judge.Pass, judge.Fail, nil}},
}

var severities = []any{session.SeverityMedium, session.SeverityHigh, session.SeverityCritical}

// restrict adds the values of such fields to the schema of a type, however deep they are.
func restrict(t reflect.Type, schema *jsonschema.Schema) {
	if schema == nil {
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		restrict(t.Elem(), schema)
	case reflect.Slice, reflect.Array:
		restrict(t.Elem(), schema.Items)
	case reflect.Map:
		restrict(t.Elem(), schema.AdditionalProperties)
	case reflect.Struct:
		for _, field := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if property := schema.Properties[name]; property != nil {
				property.Enum = append(property.Enum, few[t][name]...)
				restrict(field.Type, property)
			}
		}
	default:
	}
}

func anyOf[T any](values []T) []any {
	var all []any
	for _, value := range values {
		all = append(all, value)
	}
	return all
}

// uri writes a path of a diff as a SARIF reference.
func uri(path string) string { return (&url.URL{Path: path}).EscapedPath() }
