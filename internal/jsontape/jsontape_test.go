package jsontape

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/valyala/fastjson"
)

var kinds = map[fastjson.Type]Kind{
	fastjson.TypeNull: Null, fastjson.TypeTrue: True, fastjson.TypeFalse: False, fastjson.TypeNumber: Number,
	fastjson.TypeString: String,
	fastjson.TypeObject: Object, fastjson.TypeArray: Array,
}

// same compares a value with what another parser has made of the same text, everything in it
// included.
func same(t *testing.T, got Value, want *fastjson.Value) {
	t.Helper()
	if got.Kind() != kinds[want.Type()] {
		t.Fatalf("%s is of kind %d instead of %s", got.Raw(), got.Kind(), want.Type())
	}
	if got.Text() != string(want.GetStringBytes()) || got.Int64() != want.GetInt64() || got.Int() != want.GetInt() ||
		got.Bool() != want.GetBool() {
		t.Fatalf("%s is read as %q %d %t, not %q %d", got.Raw(), got.Text(), got.Int64(), got.Bool(),
			want.GetStringBytes(), want.GetInt64())
	}
	if f := want.GetFloat64(); f == f && got.Float64() != f {
		t.Fatalf("%s is read as %g instead of %g", got.Raw(), got.Float64(), f)
	}
	elements := want.GetArray()
	for element := range got.Elements() {
		same(t, element, elements[0])
		elements = elements[1:]
	}
	if only, ok := got.Only(); ok != (len(want.GetArray()) == 1) || only.Exists() != ok {
		t.Fatalf("%s has just one element: %t", got.Raw(), ok)
	}
	if len(elements) > 0 {
		t.Fatalf("%s lacks %d elements", got.Raw(), len(elements))
	}
	sameMembers(t, got, want.GetObject())
}

func sameMembers(t *testing.T, got Value, want *fastjson.Object) {
	t.Helper()
	var keys []string
	var values []*fastjson.Value
	want.Visit(func(key []byte, value *fastjson.Value) {
		keys, values = append(keys, string(key)), append(values, value)
	})
	count, first := 0, map[string]Value{}
	for key, value := range got.Members() {
		if count >= len(keys) || key != keys[count] {
			t.Fatalf("%s has the member %q", got.Raw(), key)
		}
		same(t, value, values[count])
		if _, again := first[keys[count]]; !again {
			first[keys[count]] = value
		}
		count++
	}
	if count != len(keys) || (got.Kind() == Object && got.Empty() != (count == 0)) {
		t.Fatalf("%s has %d members instead of %d", got.Raw(), count, len(keys))
	}
	for key, value := range first {
		if got.Get(key) != value {
			t.Fatalf("%s: the member %q is %s", got.Raw(), key, got.Get(key).Raw())
		}
	}
	if got.Get("no such member").Exists() {
		t.Fatalf("%s has a member that nobody wrote", got.Raw())
	}
}

func compare(t *testing.T, p *Parser, text []byte) {
	t.Helper()
	want, err := fastjson.ParseBytes(text)
	got, ok := p.Parse(text)
	if ok != (err == nil) {
		t.Fatalf("%q is accepted: %t; the other parser says %v", text, ok, err)
	}
	if !ok && json.Valid(text) && bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) < maxDepth {
		t.Fatalf("%q is JSON", text)
	}
	if ok {
		same(t, got, want)
	}
}

var examples = []string{
	`{}`, `[]`, ` { "a" : [ 1 , -2.5e3 , true , false , null , "x" ] } `, `"text"`, `17`, `-`, `nan`, `[inf,-inf,NaN]`,
	`[-x]`, `{"a":1,"a":2}`,
	`{"\u0061b":1,"plain":{"ab":2}}`, `"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"`, `"\ud83d"`, `"\ud83d\u0041"`,
	`"\ud83d\uzzzz"`, `"\u12"`, `"\x"`, `"\\"`, `"\\\""`,
	`"a string that is longer than thirty-two bytes and ends plainly"`,
	`"a string that is longer than thirty-two bytes, \"quoted\" and \\"`,
	`{"a":}`, `{"a"}`, `{a:1}`, `[1,]`, `[1 2]`, `{"a":1,}`, `{"a":1}x`, `"open`, `"open\"`, `{"a":"`, `tru`, `nul`, ``,
	` `, "{\"a\":\"b\x00c\"}",
	"{\"message that is long as a key can be, longer than a word\":1}",
}

func TestValuesAreThoseOfAnotherParser(t *testing.T) {
	var p Parser
	for _, text := range examples {
		compare(t, &p, []byte(text))
	}
	for _, depth := range []int{1, maxDepth - 1, maxDepth, maxDepth + 1, 100000} {
		compare(t, &p, []byte(strings.Repeat("[", depth)+strings.Repeat("]", depth)))
	}
}

func recordings(t testing.TB) [][]byte {
	t.Helper()
	files, err := filepath.Glob("../../agent/*/testdata/*/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings (%v)", err)
	}
	var lines [][]byte
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, bytes.Split(data, []byte("\n"))...)
	}
	return lines
}

// TestRecordedLinesAreReadAlike takes every line as it is and broken in many places.
func TestRecordedLinesAreReadAlike(t *testing.T) {
	var p Parser
	for number, line := range recordings(t) {
		compare(t, &p, line)
		step := max(1, len(line)/3)
		for cut := 1 + number%step; cut < len(line); cut += step {
			compare(t, &p, line[:cut])
			mutated := bytes.Clone(line)
			mutated[cut] = `"\{}[],:x0`[(number+cut)%10]
			compare(t, &p, mutated)
		}
	}
}

func TestTheMemoryOfAHugeTextIsNotKept(t *testing.T) {
	var p Parser
	if _, ok := p.Parse([]byte("[" + strings.Repeat("0,", maxKept) + "0]")); !ok {
		t.Fatal("it was not read")
	}
	v, ok := p.Parse([]byte(`["a` + strings.Repeat(`\n`, maxKept) + `"]`))
	if only, _ := v.Only(); !ok || len(only.Text()) != maxKept+1 {
		t.Fatal("it was not read")
	}
	p.Parse([]byte("0"))
	if len(p.nodes) > maxKept || cap(p.plain) > maxKept {
		t.Errorf("%d nodes and %d bytes are kept", cap(p.nodes), cap(p.plain))
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range examples {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var p Parser
		compare(t, &p, text)
		compare(t, &p, text) // what is used again must not show
	})
}

func BenchmarkParse(b *testing.B) {
	lines := recordings(b)
	size := 0
	for _, line := range lines {
		size += len(line)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	var p Parser
	for b.Loop() {
		for _, line := range lines {
			p.Parse(line)
		}
	}
}
