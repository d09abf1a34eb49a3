package redact

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

func TestWriterIsPrompt(t *testing.T) {
	var out bytes.Buffer
	w := New(Config{Environ: fifteenSecrets()}).Writer(&out)
	for _, c := range []struct{ write, want string }{
		{"a line\n", "a line\n"},
		{"half a li", "a line\nhalf a "},
		{"ne\nPassword: ", "a line\nhalf a line\nPassword: "},
	} {
		t.Run(c.write, func(t *testing.T) {
			if n, err := w.Write([]byte(c.write)); n != len(c.write) || err != nil {
				t.Errorf("Write gave %d, %v", n, err)
			}
			if out.String() != c.want {
				t.Errorf("after %q there is %q, want %q", c.write, out.String(), c.want)
			}
		})
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestWriterFailsWhenItCannotWrite(t *testing.T) {
	w := New(Config{}).Writer(brokenPipe{})
	if _, err := w.Write([]byte("a line\n")); err == nil {
		t.Error("the first write did not fail")
	}
	if _, err := w.Write([]byte("word")); err == nil {
		t.Error("a later write did not fail")
	}
	if err := w.Close(); err == nil {
		t.Error("Close did not fail")
	}
}

// A text without any separator must not be held in memory without limit, and a
// secret in it must be found wherever it stands.
func TestWriterOfOneEndlessWord(t *testing.T) {
	const secret = "s3cr3t-value-0001"
	r := New(Config{Extra: map[string]string{"S": secret}})
	filler := strings.Repeat("0123456789abcdefXYZ.", 1000)
	var in strings.Builder
	for range 60 {
		in.WriteString(filler)
		in.WriteString(secret)
	}
	for _, size := range []int{1000, 4096, 100_000} {
		var out bytes.Buffer
		w := r.Writer(&out)
		for rest := []byte(in.String()); len(rest) > 0; {
			n := min(size, len(rest))
			_, _ = w.Write(rest[:n])
			rest = rest[n:]
			if held := len(w.stream.held); held > streamLimit+size {
				t.Fatalf("%d bytes held", held)
			}
		}
		_ = w.Close()
		if want := r.String(in.String()); out.String() != want {
			t.Errorf("in pieces of %d: %d bytes, want %d; %d secrets left", size, out.Len(), len(want),
				strings.Count(out.String(), secret))
		}
	}
}

func TestWriterOfOneEndlessKey(t *testing.T) {
	r := New(Config{})
	var out bytes.Buffer
	w := r.Writer(&out)
	_, _ = w.Write([]byte("key sk-ant-"))
	for range 200 {
		_, _ = w.Write([]byte(alnums(10_000)))
	}
	_, _ = w.Write([]byte(" end\n"))
	_ = w.Close()
	if out.String() != "key [REDACTED:pattern:anthropic] end\n" {
		t.Errorf("%d bytes: %.100q", out.Len(), out.String())
	}
}

func TestDeltasHoldTheLastWordOnly(t *testing.T) {
	d := New(Config{Extra: map[string]string{"S": "correct horse battery"}}).Deltas()
	for _, c := range []struct{ push, want string }{
		{"The pass", "The "},
		{"word is cor", "password is "},
		{"rect ho", ""},
		{"rse batt", ""},
		{"ery, yes", "[REDACTED:env:S], "},
	} {
		t.Run(c.push, func(t *testing.T) {
			if got := d.Push(c.push); got != c.want {
				t.Errorf("Push(%q) gave %q, want %q", c.push, got, c.want)
			}
		})
	}
	if got := d.Flush(); got != "yes" {
		t.Errorf("Flush gave %q", got)
	}
}

func TestManyGoroutinesShareARedactor(t *testing.T) {
	r := New(Config{Environ: fifteenSecrets(), Extra: fortySecrets()})
	lines := append(cleanTrace(testenv.Size(100<<10, 20<<10)), []byte(`{"a":"s3cr3t-value-0001 \u0073\u0033cr3t-value-0001"}`))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			more := r.With(map[string]string{"T": "another-secret"})
			lane := more.Lane()
			for _, line := range lines {
				if out := lane.Line(r.JSON(line)); bytes.Contains(out, []byte("cr3t-value")) {
					t.Errorf("%s", out)
				}
			}
		})
	}
	all.Wait()
}
