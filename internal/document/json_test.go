package document

import (
	"strings"
	"testing"
)

type written struct {
	Name  string
	Count int
	Parts []struct{ Text string }
}

func TestJSONIsReadStrictly(t *testing.T) {
	var got written
	if err := DecodeJSON("x.json", []byte(` {"name":"a","count":3,"parts":[{"text":"b"}]} `), &got); err != nil ||
		got.Name != "a" || got.Count != 3 || got.Parts[0].Text != "b" {
		t.Fatalf("%+v, %v", got, err)
	}
	for source, want := range map[string]string{
		``:                                      "x.json:1:1: the document ends too early",
		"{\"name\":\n":                          "x.json:1:9: the document ends too early",
		"{\n  \"nam\": \"a\"}":                  `x.json:2:3: there is no field "nam"`,
		"{\"parts\": [\n\n{\"text\": 5}]}":      "x.json:3:10: Parts.Text: want a string, got number",
		"{\"name\":\"a\",\n \"name\":\"b\"}":    `x.json:2:7: there are two members "name"`,
		`{"parts":[{"text":"a","text":"b"}]}`:   `there are two members "text"`,
		`{"name":"a"} {}`:                       "x.json:1:14: there is something after the end of the document",
		"{\"name\":\"\xff\"}":                   "not valid UTF-8",
		`{"name" "a"}`:                          "x.json:1:8: unexpected '\"'",
		`[]`:                                    "want an object, got array",
		strings.Repeat("[", maxDepth*100) + "]": "nested too deeply",
	} {
		t.Run(source, func(t *testing.T) {
			if err := DecodeJSON("x.json", []byte(source), &got); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.60q: %v, want %s", source, err, want)
			}
		})
	}
	var any map[string]any
	if err := DecodeJSON("x.json", []byte(`{"a":{"b":[1,{"c":2}]},"A":1}`), &any); err != nil || len(any) != 2 {
		t.Errorf("%v, %v", any, err)
	}
}

func FuzzDecodeJSON(f *testing.F) {
	f.Add([]byte(`{"name":"a","parts":[{"text":"b"}]}`))
	f.Add([]byte(`{"a":1,"a":2}`))
	f.Fuzz(func(t *testing.T, source []byte) {
		var into written
		_ = DecodeJSON("x.json", source, &into)
	})
}
