package document

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type seconds int

func (seconds) JSONSchema() map[string]any {
	return map[string]any{"type": "string", "pattern": "^[0-9]+s$"}
}

type shared struct {
	Kind string `yaml:"kind" enum:"cat,dog" doc:"What it is."`
}

type pet struct {
	Name   string            `yaml:"name" required:"true"`
	Age    *int              `yaml:"age" min:"0" max:"40"`
	Nap    seconds           `yaml:"nap"`
	Toys   []string          `yaml:"toys" pattern:"^[a-z]+$"`
	Labels map[string]string `yaml:"labels"`
	Secret string            `yaml:"-"`
	shared `yaml:",inline"`
}

// Inlined structs must be exported to be decoded; the schema takes them either way.
type inlined struct {
	Shared shared `yaml:",inline"`
	Name   string `yaml:"name"`
}

func compile(t *testing.T, value any) *Schema {
	t.Helper()
	source, err := SchemaOf("pet", value)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := CompileSchema("pet", source)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestAStructsSchemaChecksItsFiles(t *testing.T) {
	schema := compile(t, pet{})
	for source, want := range map[string]string{
		"name: Tom\nage: 3\nnap: 10s\ntoys: [ball]\nlabels: {a: b}\n": "",
		"age: 3\n":                        "f.yaml:1:1: the setting name is missing",
		"name: Tom\nage: -1\n":            "f.yaml:2:6: age:",
		"name: Tom\nnap: soon\n":          "f.yaml:2:6: nap:",
		"name: Tom\ntoys: [ball, B]\n":    "f.yaml:2:14: toys.1:",
		"name: Tom\nsecret: x\nwho: me\n": "f.yaml:2:1: secret: there is no such setting; there are age, labels, name, nap, toys\nf.yaml:3:1: who: there is",
		"name: Tom\nlabels: {a: [1]}\n":   "f.yaml:2:13: labels.a:",
	} {
		t.Run(source, func(t *testing.T) {
			doc, err := Parse("f.yaml", []byte(source))
			if err != nil {
				t.Fatal(err)
			}
			err = doc.validate(schema)
			if want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%q gives %v, want %q", source, err, want)
			}
		})
	}
	doc, err := Parse("f.yaml", []byte("kind: newt\nname: x\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.validate(compile(t, inlined{})); err == nil || !strings.Contains(err.Error(), "f.yaml:1:7: kind:") {
		t.Errorf("an inlined field gives %v", err)
	}
}

func TestWhatCannotBeDescribedIsSaid(t *testing.T) {
	if _, err := SchemaOf("x", struct{ C chan int }{}); err == nil || !strings.Contains(err.Error(), "chan int") {
		t.Errorf("got %v", err)
	}
}

func TestProblemsAreShownWithACaret(t *testing.T) {
	doc, err := Parse("f.yaml", []byte("name: Tom\nage: -1\nnap: soon\n"))
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(doc.ErrorAt([]string{"age"}, "too young"),
		fmt.Errorf("load: %w", errors.Join(errors.New("plain"), doc.ErrorAt([]string{"nap"}, "no nap"))))
	want := "f.yaml:2:6: age: too young\n    age: -1\n         ^\nload: plain\nf.yaml:3:6: nap: no nap\n    nap: soon\n         ^"
	if diff := cmp.Diff(want, Explain(err)); diff != "" {
		t.Error(diff)
	}
	for text, problem := range map[string]*Error{
		"f:1:3: x\n    \ta\n    \t ^": {File: "f", Line: 1, Col: 3, Msg: "x", Excerpt: "\ta"},
		"f:1:4: x\n    äöü\n       ^": {File: "f", Line: 1, Col: 4, Msg: "x", Excerpt: "äöü"},
		"f:1:9: x\n    ab\n      ^":   {File: "f", Line: 1, Col: 9, Msg: "x", Excerpt: "ab"},
		"f:1: x":                      {File: "f", Line: 1, Msg: "x", Excerpt: "ab"},
		"f:1:2: x":                    {File: "f", Line: 1, Col: 2, Msg: "x", Excerpt: strings.Repeat("long ", 100)},
	} {
		t.Run(text, func(t *testing.T) {
			if got := Explain(problem); got != text {
				t.Errorf("%q, want %q", got, text)
			}
		})
	}
}

func FuzzDocument(f *testing.F) {
	for _, seed := range []string{
		"name: Tom\n", "a: &x [*x, *x]\n", "? {a: b}\n: c\n", "- - -\n", "\t",
		"%YAML 1.1\n---\na: b\n...\n", "a: 'b", "1: 2\n1: 3\n", "<<: *x", "a: !!float x",
	} {
		f.Add([]byte(seed))
	}
	source, err := SchemaOf("pet", pet{})
	if err != nil {
		f.Fatal(err)
	}
	schema, err := CompileSchema("pet", source)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, err := Parse("f.yaml", text)
		if err != nil {
			return
		}
		if err := doc.validate(schema); err != nil && Explain(err) == "" {
			t.Fatal("a problem without words")
		}
	})
}
