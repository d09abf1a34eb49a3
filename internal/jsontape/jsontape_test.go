package jsontape

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/testenv"
)

// same compares a value with what encoding/json makes of the same text, everything in it included.
func same(t *testing.T, got Value, want *json.Decoder) {
	t.Helper()
	token, err := want.Token()
	if err != nil {
		t.Fatal(err)
	}
	switch token := token.(type) {
	case nil:
		check(t, got, got.Kind() == Null)
	case bool:
		check(t, got, got.Bool() == token && (got.Kind() == True || got.Kind() == False))
	case string:
		check(t, got, got.Kind() == String && sameText(got.Text(), token))
	case json.Number:
		whole, _ := strconv.ParseInt(string(token), 10, 64)
		if f, err := token.Float64(); err == nil {
			check(t, got, got.Float64() == f)
		}
		saturated := whole == math.MaxInt64 || whole == math.MinInt64
		check(t, got, got.Kind() == Number && (got.Int64() == whole || saturated))
	case json.Delim:
		if token == '[' {
			check(t, got, got.Kind() == Array)
			sameElements(t, got, want)
		} else {
			check(t, got, got.Kind() == Object)
			sameMembers(t, got, want)
		}
		if _, err := want.Token(); err != nil { // the closing bracket
			t.Fatal(err)
		}
	}
}

func check(t *testing.T, got Value, same bool) {
	t.Helper()
	if !same {
		t.Fatalf("%s is read as kind %d, %q, %d, %g", got.Raw(), got.Kind(), got.Text(), got.Int64(), got.Float64())
	}
}

// sameText compares texts. Where encoding/json has replaced a character that is not valid, ours may
// be whatever stood there.
func sameText(got, want string) bool {
	return got == want || strings.ContainsRune(want, utf8.RuneError)
}

func sameElements(t *testing.T, got Value, want *json.Decoder) {
	t.Helper()
	count := 0
	for element := range got.Elements() {
		if !want.More() {
			t.Fatalf("%s has more than %d elements", got.Raw(), count)
		}
		same(t, element, want)
		count++
	}
	if want.More() {
		t.Fatalf("%s has only %d elements", got.Raw(), count)
	}
	if only, ok := got.Only(); ok != (count == 1) || only.Exists() != ok || got.Empty() != (count == 0) {
		t.Fatalf("%s has just one element: %t, none: %t", got.Raw(), ok, got.Empty())
	}
}

func sameMembers(t *testing.T, got Value, want *json.Decoder) {
	t.Helper()
	count, first := 0, map[string]Value{}
	for key, value := range got.Members() {
		if !want.More() {
			t.Fatalf("%s has more than %d members", got.Raw(), count)
		}
		wanted, err := want.Token()
		if err != nil || !sameText(key, wanted.(string)) {
			t.Fatalf("%s has the member %q instead of %q (%v)", got.Raw(), key, wanted, err)
		}
		if _, again := first[key]; !again {
			first[strings.Clone(key)] = value
		}
		same(t, value, want)
		count++
	}
	if want.More() || got.Empty() != (count == 0) {
		t.Fatalf("%s has only %d members", got.Raw(), count)
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

// touch asks a value for everything; what is not JSON may be read as anything, but must be safe.
func touch(v Value) {
	_, _, _, _ = v.Text(), v.Int(), v.Float64(), v.Raw()
	for element := range v.Elements() {
		touch(element)
	}
	for key, value := range v.Members() {
		v.Get(key)
		touch(value)
	}
}

func compare(t *testing.T, p *Parser, text []byte) {
	t.Helper()
	got, ok := p.Parse(text)
	switch {
	case ok && json.Valid(text):
		want := json.NewDecoder(bytes.NewReader(text))
		want.UseNumber()
		same(t, got, want)
	case ok:
		touch(got)
	case json.Valid(text) && bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) < maxDepth:
		t.Fatalf("%q is JSON", text)
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

func TestValuesAreThoseOfEncodingJSON(t *testing.T) {
	var p Parser
	for _, text := range examples {
		compare(t, &p, []byte(text))
	}
	for _, depth := range []int{1, maxDepth - 1, maxDepth, maxDepth + 1, 100000} {
		compare(t, &p, []byte(strings.Repeat("[", depth)+strings.Repeat("]", depth)))
	}
}

func TestWhatIsBrokenIsRefused(t *testing.T) {
	for _, text := range []string{
		``, ` `, `{"a":}`, `{"a"}`, `{a:1}`, `[1,]`, `[1 2]`, `{"a":1,}`, `{"a":1}x`, `"open`,
		`"open\"`, `{"a":"`, `tru`, `nul`, `[-x]`, `}`, strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1),
	} {
		if v, ok := Parse([]byte(text)); ok {
			t.Errorf("%q is read as %s", text, v.Raw())
		}
	}
}

func recordings(t testing.TB) [][]byte {
	t.Helper()
	files, err := filepath.Glob("../agent/*/testdata/*/*.jsonl")
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
		if number%testenv.Size(1, 5) != 0 {
			continue
		}
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
