package query

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAssertions(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"out.txt":      "First line\nSecond: OK\n",
		"trace.ndjson": enveloped("agent", 0, askBash) + "\nbroken\n" + enveloped("agent", 1, sayDone) + "\n",
		"one.json":     `{"a":{"b":[]},"empty":"","zero":0,"no":false}`,
		"job.md":       `<job user="Ann" goal="ship it">`,
		"cites.txt":    "as asked by Ann: ship it.",
		"nojson.txt":   "hello",
	}
	for name, content := range files {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	text := func(s string) *string { return &s }
	two := 2.5
	for _, test := range []struct {
		name string
		a    Assertion
		want string
	}{
		{"exists", Assertion{File: at("out.txt"), Exists: true}, `{"test":"T","pass":true}`},
		{
			"does not exist",
			Assertion{File: at("gone"), Exists: true},
			`{"test":"T","pass":false,"message":"gone does not exist"}`,
		},
		{"must not exist", Assertion{File: at("gone"), Exists: true, Not: true}, `{"test":"T","pass":true}`},
		{
			"must not exist, but does",
			Assertion{File: at("out.txt"), Exists: true, Not: true},
			`{"test":"T","pass":false,"message":"the check holds for out.txt, but must not"}`,
		},
		{
			"grep by line, any case",
			Assertion{File: at("out.txt"), Grep: text("^second: ok$")},
			`{"test":"T","pass":true}`,
		},
		{
			"grep with a message and a gate",
			Assertion{File: at("out.txt"), Grep: text("third"), Message: "no third", Gate: true},
			`{"test":"T","pass":false,"message":"no third","gate":true}`,
		},
		{
			"grep with a weight",
			Assertion{File: at("out.txt"), Grep: text("first"), Weight: &two},
			`{"test":"T","pass":true,"weight":2.5}`,
		},
		{
			"an error keeps its role and comes before the message",
			Assertion{File: at("gone"), Grep: text("x"), Gate: true, Message: "not used"},
			`{"test":"T","pass":false,"gate":true,"message":"assert: `,
		},
		{
			"an error is never turned round",
			Assertion{File: at("gone"), Grep: text("x"), Not: true},
			`{"test":"T","pass":false,"message":"assert: `,
		},
		{
			"a bad pattern",
			Assertion{File: at("out.txt"), Grep: text("(")},
			`{"test":"T","pass":false,"message":"assert: pattern`,
		},
		{
			"query of lines",
			Assertion{File: at("trace.ndjson"), Query: text("[?source=='agent'] | length(@)")},
			`{"test":"T","pass":true}`,
		},
		{
			"query of envelopes finds no types",
			Assertion{File: at("trace.ndjson"), Query: text("[?type=='assistant']")},
			`{"test":"T","pass":false,"message":"query`,
		},
		{
			"query of events",
			Assertion{
				File: at("trace.ndjson"), Unwrap: true,
				Query: text("[?type=='assistant' && source=='agent'].message.content[] | [?name=='Bash']"),
			},
			`{"test":"T","pass":true}`,
		},
		{
			"an empty array is nothing",
			Assertion{File: at("one.json"), Query: text("a.b")},
			`{"test":"T","pass":false,"message":"query`,
		},
		{
			"false is nothing",
			Assertion{File: at("one.json"), Query: text("no")},
			`{"test":"T","pass":false,"message":"query`,
		},
		{
			"an empty text is something",
			Assertion{File: at("one.json"), Query: text("empty")},
			`{"test":"T","pass":true}`,
		},
		{"zero is something", Assertion{File: at("one.json"), Query: text("zero")}, `{"test":"T","pass":true}`},
		{
			"no JSON",
			Assertion{File: at("nojson.txt"), Query: text("a")},
			`{"test":"T","pass":false,"message":"assert: nojson.txt: no JSON in this file"}`,
		},
		{
			"a bad expression",
			Assertion{File: at("one.json"), Query: text("a[")},
			`{"test":"T","pass":false,"message":"assert: query`,
		},
		{"cites the job", Assertion{File: at("cites.txt"), CitesJob: text(at("job.md"))}, `{"test":"T","pass":true}`},
		{
			"does not cite it",
			Assertion{File: at("out.txt"), CitesJob: text(at("job.md"))},
			`{"test":"T","pass":false,"message":"out.txt does not cite \"Ann: ship it\""}`,
		},
		{
			"no job to cite",
			Assertion{File: at("out.txt"), CitesJob: text(at("out.txt"))},
			`{"test":"T","pass":false,"message":"assert: out.txt has no`,
		},
		{"no mode", Assertion{File: at("out.txt")}, `{"test":"T","pass":false,"message":"assert: exactly one of`},
		{
			"two modes",
			Assertion{File: at("out.txt"), Exists: true, Grep: text("x")},
			`{"test":"T","pass":false,"message":"assert: exactly one of`,
		},
		{
			"an empty pattern",
			Assertion{File: at("out.txt"), Grep: text("")},
			`{"test":"T","pass":false,"message":"assert: --grep`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.a.Test = "T"
			got := asJSON(t, test.a.Check())
			whole := strings.HasSuffix(test.want, "}")
			if whole && got != test.want || !strings.HasPrefix(got, test.want) {
				t.Errorf("row %s, want %s", got, test.want)
			}
		})
	}
}
