package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/fit-eval/fit/internal/testenv"
)

// fortySecrets are values of all kinds people keep in variables.
func fortySecrets() map[string]string {
	list := []string{
		"s3cr3t-value-0001", "hunter2hunter2", "correct horse battery staple", "p@ss/w0rd+with=chars",
		`quote"inside"it`,
		`back\slash\path`, "tab\tand\nnewline", "<html>&amp;", "ünïcödé-sécret", "日本語のパスワード", "emoji🔑key🔒value",
		"123456789012", "a/b/c/d/e/f/g", "////////////", `""""""""""`, `\\\\\\\\\\`, "%41%42%43%44",
		"ends-with-backslash\\",
		"'single quoted'", "semi;colon,comma|pipe", "{\"json\":\"object\",\"n\":1}", "-----not-a-pem-----",
		"trailing==", "++++++++++++",
		"nabcdefgh", "u0041bcdefg", "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
		"sk-ant-api03-" + alnums(93), "ghp_" + alnums(36), "github_pat_" + alnums(82),
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0." + alnums(43),
		"550e8400-e29b-41d4-a716-446655440000", "postgres://user:pa55word@db.example.com:5432/app?sslmode=require",
		"xoxb-123456789012-" + alnums(24), "AIza" + alnums(35), "sk_live_" + alnums(24), "glpat-" + alnums(20),
		strings.Repeat("long-secret-", 30),
		"-----BEGIN RSA PRIVATE KEY-----\n" + alnums(64) + "\n" + strings.ToLower(alnums(64)) +
			"\nZZtop\n-----END RSA PRIVATE KEY-----",
	}
	secrets := map[string]string{}
	for i, value := range list {
		secrets[fmt.Sprintf("SECRET_%02d", i)] = value
	}
	return secrets
}

// everyNth takes every n-th of the secrets.
func everyNth(secrets map[string]string, n int) map[string]string {
	chosen := map[string]string{}
	for i, name := range slices.Sorted(maps.Keys(secrets)) {
		if i%n == 0 {
			chosen[name] = secrets[name]
		}
	}
	return chosen
}

// encodings are the ways a value is written. Those that begin with json give the
// content of a JSON string.
var encodings = map[string]func(string) []string{
	"raw":            func(s string) []string { return []string{s} },
	"json":           func(s string) []string { return []string{inJSON(s, false)} },
	"json twice":     func(s string) []string { return []string{inJSON(inJSON(s, false), false)} },
	"json 3 times":   func(s string) []string { return []string{inJSON(inJSON(inJSON(s, false), false), false)} },
	"json html":      func(s string) []string { return []string{inJSON(s, true)} },
	"json slashes":   func(s string) []string { return []string{strings.ReplaceAll(inJSON(s, false), "/", `\/`)} },
	"json one slash": func(s string) []string { return []string{strings.Replace(inJSON(s, false), "/", `\/`, 1)} },
	"json ascii": func(s string) []string {
		return []string{asciiOnly(inJSON(s, false), "%04x"), asciiOnly(inJSON(s, false), "%04X")}
	},
	"json \\u": func(s string) []string {
		all := escapeUnicode(s, func(int) bool { return true })
		return []string{
			all, strings.ReplaceAll(all, `\u`, `\\u`),
			escapeUnicode(s, func(i int) bool { return i == 0 }),
			escapeUnicode(s, func(i int) bool { return i%2 == 1 }),
			escapeUnicode(s, func(i int) bool { return i%5 == 4 }),
			inJSON(escapeUnicode(s, func(i int) bool { return i%3 == 0 }), false),
		}
	},
	"base64": func(s string) []string {
		var out []string
		for _, e := range []*base64.Encoding{
			base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding,
			base64.RawURLEncoding,
		} {
			for _, before := range []string{"", "u", "me", "x-access-token:", "user:"} {
				for _, after := range []string{"", "\n", "ab", "more"} {
					out = append(out, e.EncodeToString([]byte(before+s+after)))
				}
			}
		}
		return out
	},
	"base64 wrapped": func(s string) []string {
		var out []string
		for shift := 0; shift < 76; shift += testenv.Size(1, 5) {
			text := base64.StdEncoding.EncodeToString(
				[]byte(strings.Repeat("x", 60+shift) + s + strings.Repeat("y", 60)))
			out = append(out, wrap(text, 76, "\n"))
			if shift%9 == 0 {
				out = append(out, wrap(text, 64, "\r\n"), inJSON(wrap(text, 76, "\n"), false))
			}
		}
		return out
	},
	"hex": func(s string) []string {
		low := hex.EncodeToString([]byte(s))
		return []string{low, strings.ToUpper(low), "00" + low + "ff", wrap(strings.Repeat("78", 37)+low+"79", 60, "\n")}
	},
	"percent": func(s string) []string {
		var upper, lower, mixed strings.Builder
		for i := range len(s) {
			fmt.Fprintf(&upper, "%%%02X", s[i])
			fmt.Fprintf(&lower, "%%%02x", s[i])
			if i%3 == 0 {
				fmt.Fprintf(&mixed, "%%%02x", s[i])
			} else {
				mixed.WriteByte(s[i])
			}
		}
		reserved := url.PathEscape(s)
		query := url.QueryEscape(s)
		return []string{
			upper.String(), lower.String(), mixed.String(), reserved, lowerEscapes(reserved), query,
			lowerEscapes(query), url.PathEscape(inJSON(s, false)), url.QueryEscape(query),
		}
	},
	"base64 twice": func(s string) []string {
		var out []string
		for _, before := range []string{"", "a", "ab"} {
			once := base64.StdEncoding.EncodeToString([]byte(before + s))
			out = append(out, base64.StdEncoding.EncodeToString([]byte(once)),
				base64.RawURLEncoding.EncodeToString([]byte("k="+once+"\n")))
		}
		return out
	},
	"base64 in short lines": func(s string) []string {
		text := base64.StdEncoding.EncodeToString([]byte("some text before it: " + s + " and some after it"))
		return []string{wrap(text, 20, "\n"), wrap(text, 32, "\n"), wrap(text, 40, "\r\n")}
	},
	"hex in pieces": func(s string) []string {
		var out []string
		for _, text := range spellings(s)[1:8] {
			out = append(out, text, strings.ToUpper(text[:1])+text[1:])
		}
		return out
	},
	"\\x": func(s string) []string {
		var all strings.Builder
		for i := range len(s) {
			fmt.Fprintf(&all, `\x%02x`, s[i])
		}
		return []string{all.String(), strings.ReplaceAll(strings.ToUpper(all.String()), "X", "x")}
	},
	"entities": func(s string) []string {
		var decimal, hexadecimal strings.Builder
		for _, c := range s {
			fmt.Fprintf(&decimal, "&#%d;", c)
			fmt.Fprintf(&hexadecimal, "&#x%X;", c)
		}
		if !isASCII(s) {
			return []string{html.EscapeString(s)}
		}
		return []string{decimal.String(), hexadecimal.String(), html.EscapeString(s)}
	},
	"UTF-16": func(s string) []string {
		if !isASCII(s) {
			return nil
		}
		return []string{strings.Join(strings.Split(s, ""), "\x00"), "\x00" + strings.Join(strings.Split(s, ""), "\x00")}
	},
	"percent-encoded \\u": func(s string) []string {
		return []string{url.QueryEscape(escapeUnicode(s, func(int) bool { return true }))}
	},
	"UTF-16, encoded": func(s string) []string {
		if !isASCII(s) {
			return nil
		}
		wide := inUTF16(s)
		var out []string
		for _, text := range []string{wide + "\x00", "\x00" + wide, "a\x00" + wide} {
			out = append(out, hex.EncodeToString([]byte(text)), base64.StdEncoding.EncodeToString([]byte(text)))
		}
		return out
	},
	"hex and base64": func(s string) []string {
		low := hex.EncodeToString([]byte(s))
		return []string{
			base64.StdEncoding.EncodeToString([]byte(low + "\n")),
			hex.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte("u:" + s)))),
		}
	},
	"base64 in a URL": func(s string) []string {
		return []string{url.QueryEscape(base64.StdEncoding.EncodeToString([]byte("a:" + s)))}
	},
}

func inJSON(s string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	_ = e.Encode(s)
	return strings.TrimSuffix(b.String(), "\"\n")[1:]
}

func asciiOnly(s, format string) string {
	var b strings.Builder
	for _, c := range s {
		if c < 0x80 {
			b.WriteRune(c)
			continue
		}
		for _, unit := range utf16.Encode([]rune{c}) {
			fmt.Fprintf(&b, `\u`+format, unit)
		}
	}
	return b.String()
}

func escapeUnicode(s string, which func(int) bool) string {
	var b strings.Builder
	for i, c := range []rune(s) {
		if which(i) {
			for _, unit := range utf16.Encode([]rune{c}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
			continue
		}
		b.WriteString(inJSON(string(c), false))
	}
	return b.String()
}

func wrap(s string, width int, with string) string {
	var lines []string
	for len(s) > width {
		lines = append(lines, s[:width])
		s = s[width:]
	}
	return strings.Join(append(lines, s), with)
}

func lowerEscapes(s string) string {
	out := []byte(s)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == '%' {
			copy(out[i:], bytes.ToLower(out[i:i+3]))
		}
	}
	return string(out)
}

// eventCarriers are all places of an event that can hold text. Each returns a
// line of JSON with the text, which is already escaped if raw is set.
func eventCarriers(text string, raw bool) []string {
	quoted := `"` + text + `"`
	if !raw {
		b, _ := json.Marshal(text)
		quoted = string(b)
	}
	glued := `"before ` + quoted[1:len(quoted)-1] + ` after"`
	return []string{
		`{"source":"agent","seq":0,"event":{"type":"assistant","message":{"content":[{"type":"text","text":` + glued +
			`}]}}}`,
		`{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":` + quoted +
			`,"list":[[` + quoted + `]]}}]}}`,
		`{"type":"user","message":{"content":[{"type":"tool_result","content":[{"type":"text","text":` + quoted +
			`}]}]}}`,
		`{"type":"system","subtype":"init","env":{` + quoted + `:1,"k":{` + quoted + `:{}}}}`,
		`{"type":"summary","success":true,"summary":` + glued + `}`,
		`[` + quoted + `,` + quoted + `]`,
		quoted,
	}
}

// What a text is read without: to make a replacer takes longer than to use it.
var (
	withoutBreaks  = strings.NewReplacer("\r", "", "\n", "")
	withoutPieces  = strings.NewReplacer(" ", "", ":", "", ",", "", "0x", "", "\x00", "")
	standardBase64 = strings.NewReplacer("-", "+", "_", "/")
)

// leaks reports whether a secret can be read in a text, as it is or in base64 or
// hex.
func leaks(out, secret string) bool {
	if strings.Contains(out, secret) {
		return true
	}
	if len(secret) < encodedFloor {
		return false
	}
	unbroken := withoutBreaks.Replace(out)
	if strings.Contains(strings.ToLower(unbroken), hex.EncodeToString([]byte(secret))) {
		return true
	}
	pieces := withoutPieces.Replace(unbroken)
	if strings.Contains(strings.ToLower(pieces), hex.EncodeToString([]byte(secret))) ||
		strings.Contains(strings.ReplaceAll(out, "\x00", ""), secret) {
		return true
	}
	if inBase64(unbroken, secret, 2) || inBase64(unbroken, hex.EncodeToString([]byte(secret)), 1) ||
		inHex(unbroken, secret) {
		return true
	}
	return isASCII(secret) && (inBase64(unbroken, inUTF16(secret), 1) || inHex(unbroken, inUTF16(secret)))
}

// inHex reports whether a secret or its base64 can be read in the hex digits of a text.
func inHex(text, secret string) bool {
	text = strings.ToLower(text)
	for offset := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString([]byte("xxx"[:offset] + secret))
		encoded = encoded[[3]int{0, 2, 3}[offset] : len(encoded)-1]
		if strings.Contains(text, hex.EncodeToString([]byte(encoded))) {
			return true
		}
	}
	return strings.Contains(text, hex.EncodeToString([]byte(secret)))
}

// inBase64 reports whether a secret can be read in a text once or twice encoded.
func inBase64(text, secret string, times int) bool {
	plain := standardBase64.Replace(text)
	for offset := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString([]byte("xxx"[:offset] + secret))
		encoded = encoded[[3]int{0, 2, 3}[offset] : len(encoded)-1]
		if strings.Contains(plain, encoded) || times > 1 && inBase64(plain, encoded, times-1) {
			return true
		}
	}
	return false
}

// decodings returns the text and what it decodes to.
func decodings(text string) []string {
	out := []string{text}
	for i := 0; i < len(out) && len(out) < 30; i++ {
		l := layer{text: []byte(out[i])}
		for _, d := range []*layer{
			l.unescaped(), l.percentDecoded(false), l.percentDecoded(true),
			l.withoutEntities(),
		} {
			if d != nil {
				out = append(out, string(d.text))
			}
		}
	}
	return out
}

// survives reports whether a secret can be read in any of the ways the encodings
// write it.
func survives(out, secret string) bool {
	for _, text := range decodings(out) {
		if leaks(text, secret) {
			return true
		}
	}
	return false
}

// TestNoSecretSurvives plants each of 40 secrets in every place of an event, in
// every encoding.
func TestNoSecretSurvives(t *testing.T) {
	secrets := fortySecrets()
	if len(secrets) != 40 {
		t.Fatalf("%d secrets", len(secrets))
	}
	r := New(Config{Extra: secrets})
	planted := 0
	secrets = everyNth(secrets, testenv.Size(1, 10))
	for name, encode := range encodings {
		t.Run(name, func(t *testing.T) {
			for variable, secret := range secrets {
				for _, text := range encode(secret) {
					if !survives(text, secret) {
						t.Fatalf("%s: this test cannot read %q back", variable, text)
					}
					if out := r.String("see " + text + " there"); survives(out, secret) ||
						!strings.Contains(out, "[REDACTED:env:"+variable[:7]) {
						t.Errorf("plain: %q became %q", text, out)
					}
					raw := strings.HasPrefix(name, "json")
					for _, line := range eventCarriers(text, raw) {
						planted++
						out := string(r.JSON([]byte(line)))
						if survives(out, secret) {
							t.Errorf("%s survived in %s", variable, out)
						}
						if !json.Valid([]byte(line)) || !json.Valid([]byte(out)) {
							t.Errorf("no JSON: %s became %s", line, out)
						}
						if again := string(r.JSON([]byte(out))); again != out {
							t.Errorf("redacted again, %s became %s", out, again)
						}
					}
				}
			}
		})
	}
	t.Logf("%d lines", planted)
}

// TestNoSecretSurvivesAnyCut feeds every encoding of every third secret to a Writer and to Deltas,
// cut in two at every fifth place ("make soak": of every secret at every place), and by single
// bytes.
func TestNoSecretSurvivesAnyCut(t *testing.T) {
	for variable, secret := range everyNth(fortySecrets(), testenv.Stride(3, 10)) {
		r := New(Config{Extra: map[string]string{variable: secret}})
		for name, encode := range encodings {
			for i, text := range encode(secret) {
				if strings.HasPrefix(name, "base64") && i%7 != 0 {
					continue // 80 of each, most of them alike in this respect
				}
				text = "some text " + text + " more\n"
				want := r.String(text)
				if survives(want, secret) {
					t.Fatalf("%s: %q became %q", name, text, want)
				}
				step := testenv.Stride(5, 5) // 5 and 7 are coprime to the lengths of all escapes
				if len(text) > 500 {
					step = 7
				}
				for cut := 0; cut < len(text); cut += step {
					checkCut(t, r, text, want, cut)
				}
				checkBytewise(t, r, text, want)
			}
		}
	}
}

func checkCut(t *testing.T, r *Redactor, text, want string, cut int) {
	t.Helper()
	var out bytes.Buffer
	w := r.Writer(&out)
	_, _ = w.Write([]byte(text[:cut]))
	_, _ = w.Write([]byte(text[cut:]))
	if err := w.Close(); err != nil || out.String() != want {
		t.Errorf("%q, cut at %d, became %q, want %q (%v)", text, cut, out.String(), want, err)
	}
}

func checkBytewise(t *testing.T, r *Redactor, text, want string) {
	t.Helper()
	d := r.Deltas()
	var out strings.Builder
	for i := range len(text) {
		out.WriteString(d.Push(text[i : i+1]))
	}
	out.WriteString(d.Flush())
	if out.String() != want {
		t.Errorf("%q, byte by byte, became %q, want %q", text, out.String(), want)
	}
}
