package redact

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestBase64Cores(t *testing.T) {
	var cores []string
	for offset := range 3 {
		cores = append(cores, base64FormOf("s3cr3t-value-0001", 0, offset).text)
	}
	want := []string{"czNjcjN0LXZhbHVlLTA", "MzY3IzdC12YWx1ZS0w", "zM2NyM3QtdmFsdWUtMD"}
	if diff := cmp.Diff(want, cores); diff != "" {
		t.Error(diff)
	}
	r := New(Config{Extra: map[string]string{"S": "s3cr3t-value-0001"}})
	for _, core := range cores {
		if got := r.String("x " + core + " y"); got != "x [REDACTED:env:S] y" {
			t.Errorf("a core alone became %q", got)
		}
	}
}

// Nothing of the secret's own characters may be left, only what its neighbours
// put into a shared group of four.
func TestBase64LeavesNoRemainder(t *testing.T) {
	for length := encodedFloor; length < 30; length++ {
		secret := alnums(length)
		r := New(Config{Extra: map[string]string{"S": secret}})
		for _, before := range []string{"", "a", "ab", "abc", "user:"} {
			for _, after := range []string{"", "x", "xy", "xyz\n"} {
				for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
					text := e.EncodeToString([]byte(before + secret + after))
					out := r.String(text)
					head, tail, found := strings.Cut(out, "[REDACTED:env:S]")
					if !found {
						t.Fatalf("%q in %q was not found", secret, text)
					}
					if most := (len(before)*8 + 5) / 6; len(head) > most {
						t.Errorf("%q+secret+%q: %q left before", before, after, head)
					}
					if most := (len(after)*8+5)/6 + 2; len(tail) > most || after == "" && tail != "" {
						t.Errorf("%q+secret+%q: %q left after", before, after, tail)
					}
				}
			}
		}
	}
}

func TestMatching(t *testing.T) {
	r := New(Config{Extra: map[string]string{
		"SHORT": "abcd", "LONG": "abcdefgh-ijkl", "LEFT": "left-over-", "RIGHT": "over-right", "WORD": "REDACTED",
		"LAYER": "env:", "NAMED": "LONG",
		"PIN": "4711", "NUMBER": "987654321", "NEWLINE": "nfirst-letter",
		"MULTI": "line one of it\n" + strings.ToUpper(alnums(30)) + "\nend",
		"TRUE":  "true", "JSON": `{"user":"root","pass":"toor"}`,
	}})
	for _, c := range []struct{ name, in, want string }{
		{"every occurrence", "abcd abcd\nabcd", "[REDACTED:env:SHORT] [REDACTED:env:SHORT]\n[REDACTED:env:SHORT]"},
		{"the longer secret leaves no remainder of itself", "abcdefgh-ijkl", "[REDACTED:env:LONG]"},
		{"overlapping secrets become one", "left-over-right", "[REDACTED:env:LEFT]"},
		{"neighbours stay two", "abcdabcd", "[REDACTED:env:SHORT][REDACTED:env:SHORT]"},
		{
			"a placeholder is not rewritten by a short secret", "[REDACTED:env:LONG] [REDACTED:pattern:jwt]",
			"[REDACTED:env:LONG] [REDACTED:pattern:jwt]",
		},
		{"nor is its fixed part if the name is not ours", "[REDACTED:env:OTHER]", "[REDACTED:env:OTHER]"},
		{"a lone line of a secret of many lines", "got " + strings.ToUpper(alnums(30)), "got [REDACTED:env:MULTI]"},
		{
			"a word boundary that redaction made", "abcdghp_" + alnums(36) + "abcd",
			"[REDACTED:env:SHORT][REDACTED:pattern:gh-pat][REDACTED:env:SHORT]",
		},
		{"a variable is named before a shape", "sk-ant-" + alnums(20) + "abcd", "[REDACTED:env:SHORT]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := r.String(c.in); got != c.want {
				t.Errorf("%q became %q, want %q", c.in, got, c.want)
			}
			quoted, _ := json.Marshal([]string{c.in})
			want, _ := json.Marshal([]string{c.want})
			if got := r.JSON(quoted); string(got) != string(want) {
				t.Errorf("%s became %s, want %s", quoted, got, want)
			}
		})
	}
	for _, c := range []struct{ name, in, want string }{
		{"keys", `{"abcd":1}`, `{"[REDACTED:env:SHORT]":1}`},
		{"literals pass", `{"a":true,"b":[null,false]}`, `{"a":true,"b":[null,false]}`},
		{"but not as strings", `"true"`, `"[REDACTED:env:TRUE]"`},
		{"short numbers pass", `{"seq":4711,"ts":1747110}`, `{"seq":4711,"ts":1747110}`},
		{
			"long secret numbers become strings", `[987654321, -987654321.0]`,
			`["[REDACTED:env:NUMBER]", "[REDACTED:env:NUMBER]"]`,
		},
		{"an escape is not cut in two", `"x\nfirst-letter"`, `"x[REDACTED:env:NEWLINE]"`},
		{"nor one of the JSON inside", `"{\"a\":\"x\\nfirst-letter\"}"`, `"{\"a\":\"x[REDACTED:env:NEWLINE]\"}"`},
		{
			"a secret that is JSON, as JSON", `{"c":{"user":"root","pass":"toor"}}`,
			`{"c":{"user":"[REDACTED:env:JSON]","pass":"[REDACTED:env:JSON]"}}`,
		},
		{"a secret that is JSON, in a string", `"{\"user\":\"root\",\"pass\":\"toor\"}"`, `"[REDACTED:env:JSON]"`},
		{"a line with its end", "[\"abcd\"]\n", "[\"[REDACTED:env:SHORT]\"]\n"},
		{"what is not JSON is text", `{"torn":"abcd`, `{"torn":"[REDACTED:env:SHORT]`},
		{"nothing", ``, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := r.JSON([]byte(c.in)); string(got) != c.want {
				t.Errorf("%s became %s, want %s", c.in, got, c.want)
			}
		})
	}
}

// A secret of several lines is not key material alone: the lines of a password file, each behind
// the sign of a diff, the number of a listing or the name of a file.
func TestLinesOfASecretBehindPrefixes(t *testing.T) {
	lines := []string{"machine example.org", "  login the-only-user", "  password hunter2-and-more", "short", "}"}
	r := New(Config{Extra: map[string]string{"NETRC": strings.Join(lines, "\r\n") + "\n"}})
	for _, prefix := range []string{"+", "-  ", "    12\u2192", "12:", "netrc-3-", "> ", "| ", "\t# "} {
		text := ""
		for _, line := range lines {
			text += prefix + line + "\n"
		}
		quoted, _ := json.Marshal(text)
		for _, got := range []string{r.String(text), string(r.JSON(quoted))} {
			for _, word := range []string{"example", "the-only-user", "hunter2"} {
				if strings.Contains(got, word) {
					t.Errorf("behind %q: %s", prefix, got)
				}
			}
			if !strings.Contains(got, "short") || !strings.Contains(got, "}") {
				t.Errorf("behind %q, what is in every text: %s", prefix, got)
			}
		}
	}
}

func TestASecretCannotHideInAForgedPlaceholder(t *testing.T) {
	r := New(Config{Extra: map[string]string{"S": "abcdefgh-ijkl"}})
	if got := r.String("[REDACTED:env:abcdefgh-ijkl]"); got != "[REDACTED:env:[REDACTED:env:S]]" {
		t.Errorf("got %q", got)
	}
}

func TestEightBytesAreFoundRawOnly(t *testing.T) {
	r := New(Config{Extra: map[string]string{"S": "abcd1234", "T": "wxyz56789"}})
	for in, want := range map[string]string{
		"abcd1234":                 "[REDACTED:env:S]",
		"YWJjZDEyMzQ=":             "YWJjZDEyMzQ=",
		"6162636431323334":         "6162636431323334",
		"d3h5ejU2Nzg5":             "[REDACTED:env:T]",
		"7778797a3536373839":       "[REDACTED:env:T]",
		"%77%78%79%7A%35%36%37%38": "%77%78%79%7A%35%36%37%38",
	} {
		t.Run(in, func(t *testing.T) {
			if got := r.String(in); got != want {
				t.Errorf("%q became %q, want %q", in, got, want)
			}
		})
	}
}

// TestACutLeavesNothingOfASecret cuts texts with secrets of all kinds at every byte.
func TestACutLeavesNothingOfASecret(t *testing.T) {
	secrets := map[string]string{"PLAIN": "wise-old-owl-1815", "WIDE": "ünïcödé-sécret"}
	r := New(Config{Extra: secrets})
	key := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(alnums(64)+"\n", 4) + "-----END PRIVATE KEY-----"
	for _, hidden := range append(slices.Collect(maps.Values(secrets)), "ghp_"+alnums(36), key) {
		text := "before it " + hidden + " after it"
		whole := r.String(text)
		for limit := range len(text) + 3 {
			got := r.Cut(text, limit)
			if len(got) > limit || !strings.HasPrefix(whole, got) || !utf8.ValidString(got) {
				t.Fatalf("%q cut to %d bytes is %q", text, limit, got)
			}
			if open := strings.LastIndex(got, "["); open >= 0 && !strings.Contains(got[open:], "]") {
				t.Fatalf("%q cut to %d bytes is %q", text, limit, got)
			}
		}
	}
	if got := (*Redactor)(nil).Cut("äöü", 3); got != "ä" {
		t.Errorf("without a redactor: %q", got)
	}
}
