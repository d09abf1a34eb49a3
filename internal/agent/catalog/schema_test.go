package catalog

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fit-eval/fit/internal/agent/acp"
	"github.com/fit-eval/fit/internal/agent/command"
	"github.com/fit-eval/fit/internal/agent/http"
	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/jsonenc"
)

var update = flag.Bool("update", false, "write the published schema")

// TestThePublishedSchemaIsThatOfTheStructs: an entry of the file is one of the kinds.
func TestThePublishedSchemaIsThatOfTheStructs(t *testing.T) {
	schema := func(title string, form any) map[string]any {
		text, err := document.SchemaOf(title, form)
		if err != nil {
			t.Fatal(err)
		}
		var schema map[string]any
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatal(err)
		}
		return schema
	}
	var entries []any
	for _, of := range []struct {
		kind string
		form any
	}{{"acp", acp.Entry{}}, {"command", command.Entry{}}, {"http", http.Entry{}}} {
		entry := schema("agent of kind "+of.kind, of.form)
		delete(entry, "$schema")
		entries = append(entries, entry)
	}
	file := schema("agents.yaml", agentsFile{})
	file["properties"].(map[string]any)["agents"].(map[string]any)["items"] = map[string]any{"anyOf": entries}
	var out bytes.Buffer
	if err := jsonenc.WriteIndented(&out, file); err != nil {
		t.Fatal(err)
	}
	want := out.Bytes()
	path := filepath.Join("..", "..", "..", "docs", "schema", "agents.schema.json")
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != string(want) {
		t.Errorf("%s is not what the structs say (%v): run go test ./internal/agent/catalog -update", path, err)
	}
	var read jsonschema.Schema
	if err := json.Unmarshal(want, &read); err != nil {
		t.Fatal(err)
	}
	checked, err := read.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, valid := range map[string]bool{
		`{"agents":[{"id":"mine","kind":"command","command":"mine {prompt}"}]}`: true,
		`{"agents":[{"id":"bot","kind":"http","url":"http://bot/"}]}`:           true,
		`{"agents":[{"id":"bot","kind":"http","place":"http://bot/"}]}`:         false,
		`{"agents":[{"id":"bot","kind":"telepathy"}]}`:                          false,
	} {
		t.Run(text, func(t *testing.T) {
			var instance any
			if err := json.Unmarshal([]byte(text), &instance); err != nil {
				t.Fatal(err)
			}
			if err := checked.Validate(instance); (err == nil) != valid {
				t.Errorf("%s: %v", text, err)
			}
		})
	}
}
