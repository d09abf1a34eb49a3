package judge

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/fit-eval/fit/internal/document"
)

var update = flag.Bool("update", false, "write the published schema")

func TestThePublishedSchemaOfPanelsIsThatOfTheStructs(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "schema", "panel.schema.json")
	want, err := document.SchemaOf("panel.yaml", Panel{})
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the structs say (%v): run go test ./judge -update", path, err)
	}
}

// TestTheExampleOfAPanel: the guide's panel can be loaded, and may judge the agents of the example.
func TestTheExampleOfAPanel(t *testing.T) {
	p, err := LoadPanel(filepath.Join("..", "..", "examples", "versus", "panel.yaml"))
	if err != nil || len(p.Members) < 3 {
		t.Fatalf("%d members, %v", len(p.Members), err)
	}
	if err := p.Check([]string{"claude-code", "codex", "pi-agent"}, false); err != nil {
		t.Error(err)
	}
}
