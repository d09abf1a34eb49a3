package redact

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// xxd writes what the program of that name does.
func xxd(data []byte) string {
	var b strings.Builder
	for at := 0; at < len(data); at += 16 {
		line := data[at:min(len(data), at+16)]
		fmt.Fprintf(&b, "%08x:", at)
		for i, c := range line {
			if i%2 == 0 {
				b.WriteByte(' ')
			}
			fmt.Fprintf(&b, "%02x", c)
		}
		text := bytes.Map(func(r rune) rune {
			if r < ' ' || r > '~' {
				return '.'
			}
			return r
		}, line)
		fmt.Fprintf(&b, "%*s  %s\n", 1, "", text)
	}
	return b.String()
}

// TestDumpsShowNothingOfASecret looks at every place at which a secret can begin in the lines of a
// dump: neither its digits nor its text may be left.
func TestDumpsShowNothingOfASecret(t *testing.T) {
	const secret = "Wq7-Zk2_Vx9.Jt4+Hm8~Pn1=Rb6"
	r := New(Config{Extra: map[string]string{"DUMPED": secret}})
	for shift := range 33 {
		data := []byte(strings.Repeat("x", shift) + secret + strings.Repeat("y", 20))
		for name, dump := range map[string]string{"xxd": xxd(data), "hexdump -C": hex.Dump(data)} {
			quoted, err := json.Marshal(map[string]string{"text": dump})
			if err != nil {
				t.Fatal(err)
			}
			out := string(r.JSON(quoted))
			if !json.Valid([]byte(out)) {
				t.Fatalf("not JSON: %s", out)
			}
			for _, text := range []string{r.String(dump), out} {
				for at := 0; at+4 <= len(secret); at++ {
					if strings.Contains(text, secret[at:at+4]) {
						t.Fatalf("%s, shifted by %d: %q is left in\n%s", name, shift, secret[at:at+4], text)
					}
				}
				if !strings.Contains(text, "[REDACTED:env:DUMPED]") {
					t.Fatalf("%s, shifted by %d: nothing was found in\n%s", name, shift, text)
				}
			}
		}
	}
}
