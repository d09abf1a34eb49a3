package task

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/fit-eval/fit/internal/document"
)

var update = flag.Bool("update", false, "write the schemas to docs/schema")

func TestThePublishedSchemasAreThoseOfTheStructs(t *testing.T) {
	for name, of := range map[string]struct {
		title  string
		fields any
	}{
		"family.schema.json": {"family.yaml", familyFile{}},
		"task.schema.json":   {"task.yaml", TaskFile{}},
		"versus.schema.json": {"task of fit versus", specFile{}},
		"checks.schema.json": {"checks of a sample", []checkFile{}},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := document.SchemaOf(of.title, of.fields)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("..", "..", "docs", "schema", name)
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, want, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s is not what the structs say (%v): run go test ./task -update", file, err)
			}
		})
	}
}

func FuzzSettings(f *testing.F) {
	for _, seed := range []string{
		"tags: [a]\ntimeouts: {agent: 5m}\n", "tests: {weights: {a: .inf}}", "? [a]\n: b", "a: &x [*x]", "- 1",
		"port: ~", "timeouts: {agent: 5x}", "!!binary x", "repo: !!int 3",
		"&a : *a", "<<: {tags: [x]}", "tags: 2001-01-01",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		doc, err := document.Parse("task.yaml", source)
		if err != nil || doc.Empty() {
			return
		}
		if doc.Conforms(TaskFile{}) != nil {
			return
		}
		var into TaskFile
		if err := doc.Decode(&into); err != nil {
			t.Skip() // what only decoding finds is reported too
		}
	})
}
