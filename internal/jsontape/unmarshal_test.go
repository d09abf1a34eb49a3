package jsontape

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// sample has a field of every kind that our records have.
type sample struct {
	Name    string             `json:"name"`
	Omitted string             `json:"omitted,omitempty"`
	Count   int                `json:"count"`
	Small   int8               `json:"small"`
	Ms      int64              `json:"ms"`
	Share   float64            `json:"share"`
	Cost    *float64           `json:"cost"`
	Yes     bool               `json:"yes"`
	Texts   []string           `json:"texts"`
	Bytes   []byte             `json:"bytes"`
	Inner   []sample           `json:"inner"`
	Pointer *sample            `json:"pointer,omitempty"`
	ByName  map[string]float64 `json:"byName"`
	ByKind  map[Kindly]sample  `json:"byKind"`
	Raw     json.RawMessage    `json:"raw"`
	Any     any                `json:"any"`
	Time    time.Time          `json:"time"`
	Hidden  int                `json:"-"`
	Unnamed int
}

type Kindly string

// Whatever encoding/json writes is read as encoding/json reads it.
func TestUnmarshalAsEncodingJSONDoes(t *testing.T) {
	leaf := rapid.Custom(func(t *rapid.T) sample {
		s := sample{
			Name:    rapid.String().Draw(t, "name"),
			Count:   rapid.Int().Draw(t, "count"),
			Small:   rapid.Int8().Draw(t, "small"),
			Ms:      rapid.Int64().Draw(t, "ms"),
			Share:   rapid.Float64().Draw(t, "share"),
			Cost:    rapid.Ptr(rapid.Float64(), true).Draw(t, "cost"),
			Yes:     rapid.Bool().Draw(t, "yes"),
			Texts:   rapid.SliceOf(rapid.String()).Draw(t, "texts"),
			Bytes:   rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"),
			ByName:  rapid.MapOf(rapid.String(), rapid.Float64()).Draw(t, "byName"),
			Any:     rapid.SampledFrom([]any{nil, "x", 1.5, true}).Draw(t, "any"),
			Raw:     json.RawMessage(rapid.SampledFrom([]string{"null", `{"a":[1]}`, `"x"`}).Draw(t, "raw")),
			Time:    time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "time")).UTC(),
			Unnamed: rapid.Int().Draw(t, "unnamed"),
		}
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		s := leaf.Draw(t, "sample")
		s.Inner = rapid.SliceOfN(leaf, 0, 2).Draw(t, "inner")
		s.Pointer = rapid.Ptr(leaf, true).Draw(t, "pointer")
		s.ByKind = rapid.MapOfN(rapid.Map(rapid.String(), func(k string) Kindly { return Kindly(k) }), leaf, 0, 2).
			Draw(t, "byKind")
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var want, got sample
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		if !Unmarshal(text, &got) {
			t.Fatalf("%s is not read", text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s is read otherwise: %s", text, diff)
		}
	})
}

// What is no value of the type is refused, and members that nobody knows are passed over.
func TestUnmarshalRefuses(t *testing.T) {
	for text, want := range map[string]bool{
		`{"count":1,"more":{"x":[1]}}`: true,
		`{"share":1,"count":2}`:        true, // in another order
		`null`:                         true,
		`{"count":1.5}`:                false,
		`{"count":"1"}`:                false,
		`{"small":300}`:                false,
		`{"share":"x"}`:                false,
		`{"name":1}`:                   false,
		`{"yes":1}`:                    false,
		`{"texts":{}}`:                 false,
		`{"texts":[1]}`:                false,
		`{"byName":[]}`:                false,
		`{"pointer":3}`:                false,
		`{"inner":[{"count":""}]}`:     false,
		`[]`:                           false,
		`{"count":1`:                   false,
	} {
		var into sample
		if got := Unmarshal([]byte(text), &into); got != want {
			t.Errorf("%s is read: %t, want %t", text, got, want)
		}
		if err := json.Unmarshal([]byte(text), &into); (err == nil) != want {
			t.Errorf("encoding/json says of %s: %v", text, err)
		}
	}
	if Unmarshal([]byte(`{}`), sample{}) || Unmarshal([]byte(`{}`), (*sample)(nil)) {
		t.Error("what is no pointer was filled")
	}
}
