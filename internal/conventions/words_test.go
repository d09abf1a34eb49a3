package conventions

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// translated are words that sound translated, with what to say instead.
var translated = []struct {
	text    *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\btells whether\b`), "reports whether"},
	{regexp.MustCompile(`(?i)\bfor ever\b`), "forever"},
	{regexp.MustCompile(`(?i)\bgoes on where\b`), "continues where, resumes"},
	{regexp.MustCompile(`(?i)\bcan be had\b|\bis had\b`), "is available, is provided"},
	{regexp.MustCompile(`(?i)\binto possession\b`), "locks"},
	{regexp.MustCompile(`(?i)\bmade again\b`), "retried, repeated"},
	{regexp.MustCompile(`(?i)\ball are dear\b`), "up to"},
	{regexp.MustCompile(`(?i)\b(?:is|are) told (?:with|as|of|by|at once|elsewhere)\b`), "is reported, is shown"},
	{regexp.MustCompile(`(?i)\bevidence of nothing\b`), "ignored"},
	{regexp.MustCompile(`\b(?:that|it|which|[)"'\x60]|%[qsv]"?) is no (?:address|URL|number|file|regular file|directory|JSON|` +
		`array|object|duration|branch|name)\b`), "is not a"},
}

// TestPlainEnglish: what users and contributors read is plain, idiomatic English.
func TestPlainEnglish(t *testing.T) {
	walk(t, func(rel string) {
		if !strings.HasSuffix(rel, ".go") && !strings.HasSuffix(rel, ".md") ||
			rel == "internal/conventions/words_test.go" || strings.Contains(rel, "testdata/") {
			return
		}
		content, err := os.ReadFile(filepath.Join(repository(t), rel))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(content), "\n") {
			for _, word := range translated {
				if found := word.text.FindString(line); found != "" {
					t.Errorf("%s:%d: %q sounds translated; say: %s", rel, i+1, found, word.instead)
				}
			}
		}
	})
}
