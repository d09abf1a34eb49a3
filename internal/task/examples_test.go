package task

import (
	"path/filepath"
	"testing"
)

func TestTheExampleFamiliesAreFaultless(t *testing.T) {
	for name, want := range map[string]struct {
		tasks    []string
		language string
		parser   string
	}{
		"node-family":   {[]string{"slugify", "todo-api"}, LanguageNode, ParserNodeTest},
		"python-family": {[]string{"interval-merge", "word-count"}, LanguagePython, ParserJUnit},
		"go-family":     {[]string{"parse-size", "rate-limiter"}, LanguageGo, ParserGoTest},
	} {
		t.Run(name, func(t *testing.T) {
			family, err := Load(t.Context(), filepath.Join("..", "..", "examples", name), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if family.Name != name || len(family.Warnings) > 0 || len(family.Tasks) != len(want.tasks) {
				t.Errorf("got %s with %d tasks and warnings %v", family.Name, len(family.Tasks), family.Warnings)
			}
			for i, one := range family.Tasks {
				if one.ID != want.tasks[i] || one.Solution == "" || one.Suite == nil {
					t.Fatalf("task %d is %s with solution %q", i, one.ID, one.Solution)
				}
				if one.Suite.Runner.Language != want.language || one.Suite.Runner.Parser != want.parser {
					t.Errorf("%s: runner %+v", one.ID, one.Suite.Runner)
				}
				for _, check := range one.Suite.Checks {
					if len(check.Tests) == 0 {
						t.Errorf("%s: check %s does not say which tests it has", one.ID, check.Name)
					}
				}
			}
		})
	}
}
