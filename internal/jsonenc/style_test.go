package jsonenc

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fit-eval/fit/internal/jsontape"
)

// jsonText draws JSON texts with the awkward things in them: escapes, surrogates, deep nesting,
// numbers of all forms.
func jsonText(t *rapid.T, depth int) string {
	kinds := 6
	if depth == 0 {
		kinds = 4
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return rapid.SampledFrom([]string{
			"null", "true", "false", "0", "-0", "1.50", "1e2", "-12.5E-3",
			"9007199254740993", "1e400",
		}).Draw(t, "literal")
	case 1, 2:
		raw, _ := json.Marshal(rapid.String().Draw(t, "string"))
		return string(raw)
	case 3:
		return rapid.SampledFrom([]string{
			`""`, `"\u0041\ud83d\ude00"`, `"a\/b\\\"c"`,
			"\"\u2028<&>\"",
		}).Draw(t, "escapes")
	case 4:
		n := rapid.IntRange(0, 3).Draw(t, "n")
		parts := make([]string, n)
		for i := range parts {
			parts[i] = jsonText(t, depth-1)
		}
		return "[" + strings.Join(parts, " , ") + "]"
	}
	n := rapid.IntRange(0, 3).Draw(t, "n")
	parts := make([]string, n)
	for i := range parts {
		key, _ := json.Marshal(rapid.StringN(0, 5, -1).Draw(t, "key"))
		parts[i] = string(key) + "\t: " + jsonText(t, depth-1)
	}
	return "{" + strings.Join(parts, ",") + " }"
}

func TestPrintingKeepsTheMeaningOfJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := jsonText(t, 4)
		if strings.Contains(text, "1e400") {
			t.Skip("no double holds it")
		}
		var want any
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatalf("the generator made no JSON: %v", err)
		}
		for _, style := range []Style{{Signatures: true}, {Signatures: true, Indent: 2}} {
			printed := style.AppendJSON(nil, []byte(text))
			var got any
			if err := json.Unmarshal(printed, &got); err != nil {
				t.Fatalf("%s printed as %s: %v", text, printed, err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s printed as %s", text, printed)
			}
		}
	})
}

func FuzzPrintedJSONIsJSON(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[1,2.5e-3,"a\u0041"]`, `{"a":"\ud83d\ude00\\"}`,
		`"` + strings.Repeat("x", 40) + `\n"`, "\"\x01\"", `{"a":1,}`, `01`, `-`, `[`, "\"\xff\"", " null ", `[nan,inf,1-2,"\q"]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, style := range []Style{{}, {Signatures: true, Indent: 2}} {
			printed := style.AppendJSON(nil, text)
			if !json.Valid(printed) {
				t.Errorf("%q is printed as %q", text, printed)
			}
			if again := style.AppendJSON(nil, printed); string(again) != string(printed) {
				t.Errorf("%q is printed as %q, then as %q", text, printed, again)
			}
		}
	})
}

func TestSignaturesOfThinkingBlocksAreLeftOut(t *testing.T) {
	const in = `[{"type":"thinking","signature":"s","thinking":"t"},{"a":{"signature":"x","type":"thinking"}},{"type":"text","signature":"kept"}]`
	if got, want := string(Style{}.AppendJSON(nil,
		[]byte(in))), `[{"type":"thinking","thinking":"t"},{"a":{"type":"thinking"}},{"type":"text","signature":"kept"}]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := string(Style{Signatures: true}.AppendJSON(nil, []byte(in))); got != in {
		t.Errorf("got %s, want it unchanged", got)
	}
}

func TestNumbersArePrintedShort(t *testing.T) {
	for in, want := range map[string]string{
		"1.0": "1", "1e2": "100", "0.1": "0.1", "1e21": "1e+21", "1e-7": "1e-7",
		"123456789012345678901": "123456789012345680000", "-0": "0", "0.30000000000000004": "0.30000000000000004",
		"1e-9": "1e-9",
	} {
		t.Run(in, func(t *testing.T) {
			if got := string(Style{}.AppendJSON(nil, []byte(in))); got != want {
				t.Errorf("%s is printed as %s, want %s", in, got, want)
			}
		})
	}
}

func TestStringsAreWrittenWithTheFewestEscapes(t *testing.T) {
	pieces := rapid.SampledFrom([]string{
		`\n`, `\t`, `\"`, `\\`, `\/`, `\u0041`, `\u000a`, `\u001f`, `\ud83d\ude00`,
		`\ud83d`, `é`, "\xff", "\xff\xfe", "😀", "plain text that is longer than one word of the machine",
	})
	rapid.Check(t, func(t *rapid.T) {
		raw := strings.Join(rapid.SliceOf(pieces).Draw(t, "pieces"),
			rapid.SampledFrom([]string{"", "a"}).Draw(t, "between"))
		want := `"`
		for _, r := range jsontape.Unescape([]byte(raw)) {
			switch {
			case r < 0x20 || r == '"' || r == '\\':
				quoted := String(string(r))
				want += quoted[1 : len(quoted)-1]
			default:
				want += string(r)
			}
		}
		if got := string(Style{}.AppendJSON(nil, []byte(`"`+raw+`"`))); got != want+`"` {
			t.Fatalf("%q is written %s, want %s", raw, got, want+`"`)
		}
	})
}
