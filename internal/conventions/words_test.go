package conventions

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// translated are words that sound translated, with what to say instead.
var translated = []struct {
	hint    string // what every match has in it, in lower case
	text    *regexp.Regexp
	instead string
}{
	{"tells whether", regexp.MustCompile(`(?i)\btells whether\b`), "reports whether"},
	{"for ever", regexp.MustCompile(`(?i)\bfor ever\b`), "forever"},
	{"goes on where", regexp.MustCompile(`(?i)\bgoes on where\b`), "continues where, resumes"},
	{"can be had", regexp.MustCompile(`(?i)\bcan be had\b`), "is available, is provided"},
	{" is had", regexp.MustCompile(`(?i)\bis had\b`), "is available, is provided"},
	{"into possession", regexp.MustCompile(`(?i)\binto possession\b`), "locks"},
	{"made again", regexp.MustCompile(`(?i)\bmade again\b`), "retried, repeated"},
	{"all are dear", regexp.MustCompile(`(?i)\ball are dear\b`), "up to"},
	{" told ", regexp.MustCompile(`(?i)\b(?:is|are) told (?:with|as|of|by|at once|elsewhere)\b`), "is reported, is shown"},
	{"evidence of nothing", regexp.MustCompile(`(?i)\bevidence of nothing\b`), "ignored"},
	{" is no ", regexp.MustCompile(`\b(?:that|it|which|[)"'\x60]|%[qsv]"?) is no (?:address|URL|number|file|regular file|directory|JSON|` +
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
		lower := bytes.ToLower(content)
		for _, word := range translated {
			if !bytes.Contains(lower, []byte(word.hint)) {
				continue
			}
			for i, line := range strings.Split(string(content), "\n") {
				if found := word.text.FindString(line); found != "" {
					t.Errorf("%s:%d: %q sounds translated; say: %s", rel, i+1, found, word.instead)
				}
			}
		}
	})
}
