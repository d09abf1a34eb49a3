package document

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const personSchema = `{
	"type": "object",
	"properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}, "pets": {"type": "array", "items": {"enum": ["cat", "dog"]}}},
	"required": ["name"]
}`

func TestErrorsNameTheirPlace(t *testing.T) {
	schema, err := CompileSchema("person", []byte(personSchema))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		source string
		want   []string
	}{
		"valid":        {"name: Ada\nage: 36\npets: [cat]\n", nil},
		"json is yaml": {`{"name": "Ada"}`, nil},
		"wrong type": {
			"name: Ada\nage: old\n",
			[]string{"f.yaml:2:6: age: must be a whole number, but is \"old\""},
		},
		"two errors": {
			"name: 7\npets:\n  - cat\n  - newt\n",
			[]string{"f.yaml:1:7: name:", "f.yaml:4:5: pets.1:"},
		},
		"missing":         {"age: 3\n", []string{"f.yaml:1:1: the setting name is missing"}},
		"no YAML":         {"name: [Ada\n", []string{"f.yaml:"}},
		"tab indentation": {"pets:\n\t- cat\n", []string{"f.yaml:2:"}},
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := Parse("f.yaml", []byte(test.source))
			if err == nil {
				err = doc.validate(schema)
			}
			if (err == nil) != (test.want == nil) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
}

func TestDocumentsInsideFilesKeepTheFilesLines(t *testing.T) {
	doc, err := parseAt("profile.md", []byte("model: [\n"), 1)
	if err == nil {
		t.Fatalf("parsed %v", doc)
	}
	var at *Error
	if !errors.As(err, &at) || at.Line < 2 {
		t.Errorf("got %v, want a place on line 2 or later", err)
	}
}

func TestDecodeAndCaret(t *testing.T) {
	doc, err := Parse("f.yaml", []byte("name: Ada\nage: x\n"))
	if err != nil {
		t.Fatal(err)
	}
	var person struct {
		Name string
		Age  int
	}
	err = doc.Decode(&person)
	var at *Error
	if !errors.As(err, &at) {
		t.Fatalf("got %v, want an Error", err)
	}
	if diff := cmp.Diff("age: x\n     ^", at.Caret()); diff != "" {
		t.Error(diff)
	}
}

func TestEmptyDocuments(t *testing.T) {
	for _, source := range []string{"", "\n", "# only a comment\n", "null\n", "~"} {
		doc, err := Parse("f.yaml", []byte(source))
		if err != nil || !doc.Empty() {
			t.Errorf("%q: empty %v, error %v", source, doc != nil && doc.Empty(), err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("a: 1\nb: [x, *y]\n"))
	f.Add([]byte("? {a: b}\n: c"))
	schema, err := CompileSchema("person", []byte(personSchema))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		doc, err := Parse("f.yaml", source)
		if err != nil {
			return
		}
		_ = doc.validate(schema) // must not panic; whether it is valid is not the question
	})
}

func TestADateWithoutQuotesIsText(t *testing.T) {
	for written, want := range map[string]string{
		"2026-01-31": "2026-01-31", "2026-01-31 10:00:00": "2026-01-31 10:00:00", `"2026-01-31"`: "2026-01-31",
	} {
		t.Run(written, func(t *testing.T) {
			var into struct {
				Day  string         `yaml:"day"`
				Rest map[string]any `yaml:"rest"`
			}
			doc, err := Read("days.yaml", []byte("day: "+written+"\nrest: {since: "+written+"}\n"), &into)
			if err != nil || into.Day != want || into.Rest["since"] != want {
				t.Fatalf("%+v, %v", into, err)
			}
			if text, err := doc.JSON(); err != nil || string(text) != `{"day":"`+want+`","rest":{"since":"`+want+`"}}` {
				t.Errorf("%s, %v", text, err)
			}
		})
	}
}
