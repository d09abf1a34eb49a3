package document

import (
	"strings"
	"testing"
)

func TestFrontMatter(t *testing.T) {
	for name, test := range map[string]struct{ text, who, body string }{
		"none":                  {"Be kind.\n", "", "Be kind.\n"},
		"some":                  {"---\nwho: x\n---\nBe kind.\n", "x", "Be kind.\n"},
		"nothing between":       {"---\n---\nBe kind.", "", "Be kind."},
		"nothing after":         {"---\nwho: x\n---", "x", ""},
		"CRLF and BOM":          {"\ufeff---\r\nwho: x\r\n---\r\nBe kind.\r\n", "x", "Be kind.\n"},
		"blanks after a fence":  {"--- \nwho: x\n---\t\nBe kind.", "x", "Be kind."},
		"a rule in the text":    {"Be kind.\n\n---\n\nAlways.", "", "Be kind.\n\n---\n\nAlways."},
		"dashes in the text":    {"---\nwho: x\n---\na\n---\nb", "x", "a\n---\nb"},
		"dashes within a value": {"---\nwho: x---\n---\na", "x---", "a"},
		"empty":                 {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			settings, body, err := FrontMatter("x.md", []byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			var got struct{ Who string }
			if settings != nil {
				if err := settings.Decode(&got); err != nil {
					t.Fatal(err)
				}
			}
			if got.Who != test.who || string(body) != test.body {
				t.Errorf("who %q, body %q", got.Who, body)
			}
		})
	}
}

func TestFrontMatterThatIsNotUnderstoodIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"---\nwho: x\n":          "do not end",
		"---\nwho: x\n--\nhello": "do not end",
		"---":                    "first line",
		"\n---\nwho: x\n---\n":   "first line",
		"  ---\nwho: x\n---\n":   "first line",
		"---\nwho: [\n---\n":     "x.md:",
	} {
		t.Run(text, func(t *testing.T) {
			if _, _, err := FrontMatter("x.md", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", text, err)
			}
		})
	}
}
