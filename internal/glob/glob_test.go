package glob_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/glob"
)

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		pattern, path string
		want          bool
	}{
		{"a/**", "a/b", true},
		{"a/**", "a/.hidden/b/c", true},
		{"a/**", "a", false},
		{"a/**", "ab", false},
		{"**", "a", true},
		{"**", ".a/.b", true},
		{"**/b", "b", true},
		{"**/b", "x/y/b", true},
		{"a/**/b", "a/b", true},
		{"a/**/b", "a/x/y/b", true},
		{"*", "a/b", false},
		{"*.md", ".hidden.md", true},
		{"**b", "xb", true},
		{"**b", "x/b", false},
		{"***", "a/b", false},
		{"a?c", "abc", true},
		{"a?c", "a/c", false},
		{"a[1].md", "a[1].md", false},
		{"a[1].md", "a1.md", true},
		{`a\[1\].md`, "a[1].md", true},
		{"[!a-c]x", "dx", true},
		{"[!a-c]x", "bx", false},
		{"[^a]x", "ax", false},
		{"{a,b}/*.md", "b/x.md", true},
		{"{a,b/{c,d}}/x", "b/d/x", true},
		{"{a,b/{c,d}}/x", "b/x", false},
		{"x{,y}", "x", true},
		{"A", "a", false},
		{"caf\u00e9", "cafe\u0301", false},
		{"?", "\U0001F600", false},
		{"*", "\U0001F600", true},
		{"a(b)|c", "a(b)|c", true},
	} {
		t.Run(test.pattern+" against "+test.path, func(t *testing.T) {
			pattern, err := glob.Compile(test.pattern)
			if err != nil {
				t.Fatal(err)
			}
			if got := pattern.Match(test.path); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestOnlyCleanRelativePathsMatch(t *testing.T) {
	everything, err := glob.Compile("**")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b", "a\xff"} {
		if everything.Match(path) {
			t.Errorf("** matches %q", path)
		}
	}
}

func TestUnsupportedSyntaxIsRefusedWithItsReason(t *testing.T) {
	for pattern, reason := range map[string]string{
		"":                        "empty",
		"!a":                      "negation",
		"#a":                      "comment",
		"@(a|b)":                  "extended glob",
		"a/*(b)":                  "extended glob",
		"a/**(b)":                 "extended glob",
		"a/!(b)":                  "extended glob",
		"{@,a}(b)":                "extended glob",
		"{1..3}":                  "without comma",
		"{a}":                     "without comma",
		"{a,b":                    "unbalanced",
		"a,b}":                    "unbalanced",
		"${a,b}":                  "dollar",
		"[{a,b}]":                 "inside a class",
		`\{a,b\}`:                 "backslash together with braces",
		"[]a]":                    "empty class",
		"[a":                      "not closed",
		`a\*?`:                    "backslash and a wildcard",
		"**/a/b/**/c/**":          "different numbers",
		"[a/b]":                   "not closed",
		"[z-a]":                   "reversed",
		"[a-]":                    "hyphen",
		"[[:alpha:]]":             "bracket inside",
		`[\a]`:                    "backslash and a wildcard",
		"/a":                      "empty segment",
		"a/":                      "empty segment",
		"a//b":                    "empty segment",
		"./a":                     ". or ..",
		"a/../b":                  ". or ..",
		`a\`:                      "backslash at the end",
		"a\xff":                   "valid text",
		"a\nb":                    "valid text",
		strings.Repeat("a", 5000): "longer",
		strings.Repeat("**/", 40): "empty segment",
		strings.Repeat("{a,b}", 9) + strings.Repeat("{c,d}", 9): "too many patterns",
		strings.Repeat("**/a/", 40) + "a":                       "too many **",
	} {
		t.Run(pattern, func(t *testing.T) {
			_, err := glob.Compile(pattern)
			var unsupported *glob.UnsupportedError
			if !errors.As(err, &unsupported) {
				t.Errorf("Compile(%.20q) gives %v, want an UnsupportedError", pattern, err)
				return
			}
			if !strings.Contains(unsupported.Reason, reason) {
				t.Errorf("Compile(%.20q) is refused because of %q, want %q", pattern, unsupported.Reason, reason)
			}
		})
	}
}

func TestTheZeroPatternMatchesNothing(t *testing.T) {
	if (glob.Pattern{}).Match("a") {
		t.Error("the zero pattern matches a")
	}
}

func FuzzGlob(f *testing.F) {
	for _, seed := range []string{"a/**", "{a,b}/[!c]?", `\*`, "@(a)", "**/**", "a]b", "[a-z]*"} {
		f.Add(seed, "a/b")
	}
	f.Fuzz(func(t *testing.T, source, path string) {
		pattern, err := glob.Compile(source)
		if err != nil {
			return
		}
		matched := pattern.Match(path)
		if matched && (strings.HasPrefix(path, "/") || strings.Contains("/"+path+"/", "/../")) {
			t.Errorf("%q matches %q, which is not a clean relative path", source, path)
		}
		if !strings.ContainsAny(source, `*?[]{}\`) && matched && source != path {
			t.Errorf("the literal %q matches %q", source, path)
		}
	})
}
