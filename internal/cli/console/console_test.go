package console

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/profile"
	"github.com/fit-eval/fit/price"
)

var update = flag.Bool("update", false, "write the published schemas")

func TestThePublishedSchemasAreThoseOfTheStructs(t *testing.T) {
	for name, of := range map[string]struct {
		title string
		file  any
	}{
		"prices.schema.json":  {"price file", price.File{}},
		"profile.schema.json": {"profile front matter", profile.FrontMatter{}},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := document.SchemaOf(of.title, of.file)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("..", "..", "..", "docs", "schema", name)
			if *update {
				if err := os.WriteFile(file, want, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s is not what the structs say (%v): run go test ./internal/cli/console -update", file, err)
			}
		})
	}
}

func TestAPriceFileAddsToTheTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prices.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	con := &Console{Environ: []string{pricesVariable + "=" + path}}
	write("prices:\n  - {model: ours, from: 2026-01-01, input: 1, output: 2, source: contract}\n")
	if err := con.LoadPrices(); err != nil {
		t.Fatal(err)
	}
	tokens := price.TokenUsage{InputTokens: 1_000_000, OutputTokens: 500_000}
	cost := con.PriceTable().Cost("ours", 1790000000000, tokens)
	if cost == nil || *cost != 2 {
		t.Errorf("cost of ours = %v, want 2", cost)
	}
	if !con.PriceTable().Priced("claude-sonnet-4-5", 1790000000000) {
		t.Error("the built-in prices are gone")
	}

	write("prices:\n  - {model: ours, from: soon, input: 1, output: 2, source: contract}\n  - {modell: x}\n")
	err := con.LoadPrices()
	var coded *Error
	if !errors.As(err, &coded) || coded.Code != ExitUsage || !strings.Contains(err.Error(), "prices.yaml:2:25:") ||
		!strings.Contains(err.Error(), "modell: there is no such setting") {
		t.Errorf("mistakes are reported as %v", err)
	}
}
