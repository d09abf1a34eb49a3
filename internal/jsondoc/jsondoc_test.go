package jsondoc_test

import (
	"encoding/json"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fit-eval/fit/internal/jsondoc"
)

// members returns the values of an object, as they were seen.
func members(text string) (map[string]string, error) {
	found := map[string]string{}
	err := jsondoc.Members(strings.NewReader(text), func(name string, decoder *json.Decoder) error {
		if name == "list" {
			return jsondoc.Elements(decoder, func(raw []byte) error {
				found["list"] += string(raw) + ";"
				return nil
			})
		}
		var value json.RawMessage
		err := decoder.Decode(&value)
		found[name] = string(value)
		return err
	})
	return found, err
}

func TestADocumentIsReadMemberByMember(t *testing.T) {
	t.Parallel()
	got, err := members("\ufeff" + `{"a": {"b": [1, NaN]}, "list": [1, "NaN", {"x": -Infinity}], "c": "\"Infinity"}` + "\n")
	want := map[string]string{"a": `{"b": [1, null]}`, "list": `1;"NaN";{"x": null};`, "c": `"\"Infinity"`}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v %v", got, err)
	}
	if got, err := members(`{"list": null}`); err != nil || got["list"] != "" {
		t.Errorf("null is read as %v, %v", got, err)
	}
}

func TestADocumentThatIsNotOneIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                   "this is no JSON object",
		`[1]`:                "this is no JSON object",
		`{"a": 1, "a": 2}`:   `"a" is there twice`,
		`{"a": 1`:            "the document was cut",
		`{"list": [1, 2`:     "list: ",
		`{"list": 7}`:        "this is no array",
		`{"a": 1} {"a": 2}`:  "something follows",
		`{"a": nothing}`:     "a: ",
		`{"a": NaNaN}`:       "a: ",
		`{"a": 1, NaN: "x"}`: "",
	} {
		t.Run(text, func(t *testing.T) {
			if _, err := members(text); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", text, err, want)
			}
		})
	}
}

// However the text is cut into chunks, only bare words are replaced.
func TestNumbersOfPythonAreNull(t *testing.T) {
	t.Parallel()
	const text = `{"NaN": NaN, "a\\": [Infinity, -Infinity, -1, true], "é NaN": "-Infinity \" NaN"}`
	const want = `{"NaN": null, "a\\": [null, null, -1, true], "é NaN": "-Infinity \" NaN"}`
	for _, in := range []io.Reader{
		strings.NewReader(text),
		iotest.OneByteReader(strings.NewReader(text)),
		iotest.DataErrReader(strings.NewReader(text)),
	} {
		if got, err := io.ReadAll(jsondoc.Finite(in)); string(got) != want || err != nil {
			t.Errorf("%s, %v", got, err)
		}
	}
	got, err := jsondoc.Compact([]byte(`{"a": NaN, "b": [ 1 ]}`))
	if string(got) != `{"a":null,"b":[1]}` || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}

func TestATextIsDecodedWhole(t *testing.T) {
	t.Parallel()
	var got struct{ A, B *float64 }
	if err := jsondoc.Decode([]byte(`{"a": NaN, "b": 2}`), &got); err != nil || got.A != nil || *got.B != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{`{"b": 1}{"b": 2}`, `{"a": NaN} x`, `{"b": `, `{"b": "x"}`, `{"a": NaN, "b": "x"}`} {
		if err := jsondoc.Decode([]byte(text), &got); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
	if _, err := jsondoc.Compact([]byte(`{"a": `)); err == nil || !strings.Contains(err.Error(), "not JSON") {
		t.Errorf("of half a text it says %v", err)
	}
}
