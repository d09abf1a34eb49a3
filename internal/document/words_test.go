package document

import (
	"strings"
	"testing"
)

func TestEveryRuleHasWords(t *testing.T) {
	for _, test := range []struct{ schema, value, want string }{
		{`{"minimum": 0}`, "-4", "must be at least 0, but is -4"},
		{`{"maximum": 40}`, "40.5", "must be at most 40, but is 40.5"},
		{`{"type": "integer"}`, "old", `must be a whole number, but is "old"`},
		{`{"type": "integer"}`, "1.5", "must be a whole number, but is 1.5"},
		{`{"type": "number"}`, "yes please", `must be a number, but is "yes please"`},
		{`{"type": "string"}`, "7", "must be text, but is 7"},
		{`{"type": "string"}`, "true", "must be text, but is true"},
		{`{"type": "string"}`, "", "must be text, but is nothing"},
		{`{"type": "boolean"}`, "[1]", "must be true or false, but is a list"},
		{`{"type": ["array", "string"]}`, "{a: 1}", "must be a list or text, but is a mapping"},
		{`{"type": "object"}`, "x", `must be a mapping, but is "x"`},
		{`{"enum": ["cat", "dog", "newt"]}`, "cow", `must be cat, dog or newt, but is "cow"`},
		{`{"enum": [1]}`, "2", "must be 1, but is 2"},
		{`{"pattern": "^[a-z]+$"}`, "B", `must have the form ^[a-z]+$, but is "B"`},
		{`{"pattern": "^[0-9]+s$", "examples": ["90s", "5s"]}`, "soon", `must look like 90s or 5s, but is "soon"`},
		{`{"pattern": "."}`, `""`, "must not be empty"},
		{
			`{"type": "integer"}`, strings.Repeat("x", 100),
			`must be a whole number, but is "` + strings.Repeat("x", 60) + `…"`,
		},
		{`{"type": "object", "required": ["b"]}`, "{a: 1}", "the setting b is missing"},
		{`{"type": "object", "additionalProperties": false}`, "{a: 1}", "there is no such setting"},
	} {
		schema, err := CompileSchema("test", []byte(`{"properties": {"it": `+test.schema+`}}`))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := Parse("f.yaml", []byte("# a file\nit: "+test.value+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		err = doc.validate(schema)
		if err == nil || !strings.HasPrefix(err.Error(), "f.yaml:2:") ||
			!strings.HasSuffix(err.Error(), ": "+test.want) {
			t.Errorf("%s of %s: %v, want %q", test.value, test.schema, err, test.want)
		}
	}
}

func TestWhatKeepsTheRulesIsFine(t *testing.T) {
	for value, schema := range map[string]string{
		"0": `{"minimum": 0}`, "40.0": `{"type": "integer", "maximum": 40}`, "1.0": `{"enum": [1]}`,
		"[]": `{"type": "array"}`, "dog": `{"enum": ["cat", "dog"]}`, "90s": `{"pattern": "^[0-9]+s$"}`,
		"18446744073709551615": `{"type": "integer", "minimum": 0}`,
	} {
		compiled, err := CompileSchema("test", []byte(`{"properties": {"it": `+schema+`}}`))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := Parse("f.yaml", []byte("it: "+value+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if err := doc.validate(compiled); err != nil {
			t.Errorf("%s of %s: %v", value, schema, err)
		}
	}
}
