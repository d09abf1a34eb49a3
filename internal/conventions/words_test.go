package conventions

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	{"%", regexp.MustCompile(`\d %(?:%|[.,;:)"\x60](?:\D|$)|$| (?:CI|of|interval|confidence)\b)`), "95%, without a space"},
	{"includes no difference", regexp.MustCompile(`(?i)\bincludes no difference\b`), "includes zero"},
	{"of 10", regexp.MustCompile(`(?i)\bin 8 of 10(?: such)? (?:cases|experiments)\b`), "at 80% power"},
	{
		"of this size", regexp.MustCompile(`(?i)\bexperiment of this size(?: would have)? f(?:inds|ound)\b`),
		"minimum detectable difference",
	},
	{"looked at while", regexp.MustCompile(`(?i)\blooked at while it\b`), "sequential analysis"},
	{"false claims", regexp.MustCompile(`(?i)\bmakes? false claims\b`), "inflates the false-positive rate"},
	{"no spread", regexp.MustCompile(`(?i)\bno spread\b`), "zero variance"},
	{"with chance", regexp.MustCompile(`(?i)\bscripted, with chance\b`), "with seeded randomness"},
	{"like machines", regexp.MustCompile(`(?i)\bon like machines\b`), "the same machine setup"},
	{"under way", regexp.MustCompile(`(?i)\bunder way\b`), "in flight, running"},
	{"processor time", regexp.MustCompile(`(?i)\bprocessor time\b`), "CPU time"},
	{"closed to other users", regexp.MustCompile(`(?i)\bclosed to other users\b`), "private (mode 0700)"},
	{"killed process left", regexp.MustCompile(`(?i)\bthat a killed process left\b`), "stale, orphaned"},
	{"would travel", regexp.MustCompile(`(?i)\bwould travel\b`), "would be sent"},
	{"split evenly", regexp.MustCompile(`(?i)\bcan be split evenly\b`), "can tie"},
	{"give another", regexp.MustCompile(`(?i)\bgive another --`), "choose another --"},
	{"that is installed", regexp.MustCompile(`(?i)\bthe first that is installed\b`), "the first one installed"},
	{"fit's own", regexp.MustCompile(`(?i)\bfit's own (?:\w+ ){0,2}agent\b`), "the built-in agent"},
	{"opens from disk", regexp.MustCompile(`(?i)\ba page that opens from disk\b`), "a self-contained file"},
	{" is no ", regexp.MustCompile(`\b(?:that|it|which|[)"'\x60]|%[qsv]"?) is no (?:address|URL|number|file|regular file|directory|JSON|` +
		`array|object|duration|branch|name)\b`), "is not a"},
}

// glossary names the words we do not use, beside those that we do.
const glossary = "ARCHITECTURE.md"

// TestPlainEnglish: what users and contributors read is plain, idiomatic English.
func TestPlainEnglish(t *testing.T) {
	walk(t, func(rel string) {
		if !slices.Contains([]string{".go", ".md", ".ts", ".tsx"}, filepath.Ext(rel)) ||
			rel == "internal/conventions/words_test.go" || rel == glossary || strings.Contains(rel, "testdata/") {
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

// guides returns the pages of the documentation, by name.
func guides(t *testing.T) map[string][]byte {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	contents := map[string][]byte{}
	for _, page := range pages {
		if contents[page], err = os.ReadFile(page); err != nil {
			t.Fatal(err)
		}
	}
	return contents
}

// printed is a box of what a command prints.
var printed = regexp.MustCompile("(?ms)^```text\n.*?^```$")

// TestAPageHasOneNameForACommand: a reader types what the page typed before.
func TestAPageHasOneNameForACommand(t *testing.T) {
	for page, content := range guides(t) {
		content = printed.ReplaceAll(content, nil)
		for short, long := range map[string]string{
			"fit-benchmark": "fit benchmark",
			"fit-harness":   "fit harness",
			"fit-trace":     "fit trace",
			"subq eval":     "fit versus",
		} {
			one, other := regexp.MustCompile(`\b`+short+` [a-z]`), regexp.MustCompile(`\b`+long+` [a-z]`)
			if one.Match(content) && other.Match(content) {
				t.Errorf("%s has both %q and %q", page, short, long)
			}
		}
	}
}

// TestGuidesHideNothing refuses set-up that a test would see and a reader would not: a guide works
// with what it prints.
func TestGuidesHideNothing(t *testing.T) {
	for page, content := range guides(t) {
		if bytes.Contains(content, []byte("<!-- run:")) {
			t.Errorf("%s has a comment that only a test reads", page)
		}
	}
}
