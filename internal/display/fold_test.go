package display

import "testing"

func TestFoldBreaksLinesBetweenWords(t *testing.T) {
	for line, want := range map[string]string{
		"short":                                 "short",
		"note: one two three four":              "note: one two three\n  four",
		"  a list of several things":            "  a list of several\n    things",
		"name   what it is, and why":            "name   what it is,\n       and why",
		"name   a   b, of the last row":         "name   a   b, of the\n           last row",
		"unbreakable-as-it-is-and-long":         "unbreakable-as-it-is-and-long",
		"again: fit-benchmark grade --task x":   "again:\n  fit-benchmark grade --task x",
		"→ npm i a-long-name-here, with more":   "→ npm i a-long-name-here,\n  with more",
		"lost: fit did not run this":            "lost: fit did not\n  run this",
		"codex  missing → npm install -g codex": "codex  missing\n       → npm install -g codex",
		"日本語日本語 日本語日本語":                         "日本語日本語\n  日本語日本語",
	} {
		t.Run(line, func(t *testing.T) {
			if got := Fold(line+"\n", 20); got != want+"\n" {
				t.Errorf("%q becomes\n%s", line, got)
			}
		})
	}
}
