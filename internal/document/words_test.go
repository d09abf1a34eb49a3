package document_test

import (
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/document"
)

// What is wrong with a file is said to those who write it, with the place.
func TestBrokenFilesAreExplainedInWords(t *testing.T) {
	for source, want := range map[string]string{
		"a: \"b\n":          "f.yaml:2:1: the file ends inside a text in quotes; close it",
		"a: {b: 1\n":        "f.yaml:2:1: a mapping in braces is not closed",
		"a: [1\n":           "f.yaml:2:1: a list in brackets is not closed",
		"a: @b\n":           "f.yaml:1:4: no value begins with this character",
		"a: b: c\n":         "f.yaml:1:5: there is no place for a colon here",
		"a:\n  b: 1\n c: 2": "a key was expected; indent as the lines above",
		"a: 1\nb\nc: 2\n":   "a colon is missing after the key",
	} {
		t.Run(source, func(t *testing.T) {
			_, err := document.Parse("f.yaml", []byte(source))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, not %q", source, err, want)
			}
		})
	}
}
