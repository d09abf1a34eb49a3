package stats

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

func TestEveryExportedFunctionIsExplained(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	functions := 0
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || !function.Name.IsExported() {
				continue
			}
			doc := function.Doc.Text()
			if doc == "" {
				t.Errorf("%s: %s has no documentation", file.Name(), function.Name.Name)
			}
			if function.Recv != nil {
				continue
			}
			functions++
			for _, part := range []string{"\nFormula: ", "\nUse ", "\nDo not "} {
				if !strings.Contains(doc, part) {
					t.Errorf("%s: the documentation of %s has no line that starts with %q", file.Name(),
						function.Name.Name, strings.TrimSpace(part))
				}
			}
		}
	}
	if functions < 40 {
		t.Errorf("only %d exported functions found: the test looks in the wrong place", functions)
	}
}
