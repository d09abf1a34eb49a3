package conventions

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAChangeTouchesFewFiles: ARCHITECTURE.md says where to make a change, and these are the files
// that an example of it stands in, tests aside. An option that is copied from layer to layer would
// be forgotten in one of them.
func TestAChangeTouchesFewFiles(t *testing.T) {
	for _, change := range []struct {
		what string
		most int
		// names are spellings of the example: whoever has one of them knows about it.
		names []string
	}{
		{"an option of the gateway", 4, []string{"DenyServerTools", "deny-server-tools"}},
		{"a runner of tests", 4, []string{"LanguagePython"}},
		{"a report of a runner", 4, []string{"ParserGoTest", "go-test-json"}},
		{"a column of the report", 4, []string{"MedianTurns", "medianTurns"}},
		{"a column of the head to head", 4, []string{"CacheHitRatio"}},
	} {
		t.Run(change.what, func(t *testing.T) {
			var found []string
			walk(t, func(rel string) {
				if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
					return
				}
				source, err := os.ReadFile(filepath.Join(repository(t), rel))
				if err != nil {
					t.Fatal(err)
				}
				knows := func(name string) bool { return strings.Contains(string(source), name) }
				if slices.ContainsFunc(change.names, knows) {
					found = append(found, rel)
				}
			})
			if len(found) == 0 || len(found) > change.most {
				t.Errorf("stands in %d files, want at most %d: %s", len(found), change.most,
					strings.Join(found, ", "))
			}
		})
	}
}
