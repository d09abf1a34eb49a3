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
// that this one does not know.
func Schema(name string, more map[string]reflect.Type) ([]byte, error) {
	kind, known := documented[name]
	if !known {
		kind, known = more[name]
	}
	if !known {
		return nil, fmt.Errorf("there is no type %q, only %s", name, strings.Join(SchemaNames(more), ", "))
	}
	schema, err := jsonschema.ForType(kind, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		// these have their own MarshalJSON, which their fields do not show
		reflect.TypeFor[stats.AtK]():       {Type: "object"},
		reflect.TypeFor[json.RawMessage](): {},
	}})
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", name, err)
	}
	schema.Schema, schema.Title = "https://json-schema.org/draft/2020-12/schema", name
	return json.MarshalIndent(schema, "", "  ")
}

// uri writes a path of a diff as a SARIF reference.
func uri(path string) string { return (&url.URL{Path: path}).EscapedPath() }
