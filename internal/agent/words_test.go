package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"":                           nil,
		" my-agent  --stdio ":        {"my-agent", "--stdio"},
		`a 'b c' "d e"`:              {"a", "b c", "d e"},
		`a\ b "c\"d\\" 'e\f' "g\h"`:  {"a b", `c"d\`, `e\f`, `g\h`},
		`x ''`:                       {"x", ""},
		`--flag="with space"'and 2'`: {"--flag=with spaceand 2"},
		"$HOME *.go":                 {"$HOME", "*.go"},
	} {
		t.Run(text, func(t *testing.T) {
			got, err := Words(text)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%q: %v %s", text, err, diff)
			}
		})
	}
	for _, text := range []string{`a 'b`, `a "b`, `a \`} {
		if got, err := Words(text); err == nil {
			t.Errorf("%q: %q", text, got)
		}
	}
}
