package redact_test

import (
	"fmt"
	"os"

	"github.com/fit-eval/fit/redact"
)

// Values of well-known variables and the shapes of well-known credentials are found, also in
// encoded forms.
func ExampleRedactor_String() {
	r := redact.New(redact.Config{Environ: []string{"ANTHROPIC_API_KEY=wise-old-owl-1815"}})
	fmt.Println(r.String("key=wise-old-owl-1815"))
	fmt.Println(r.String("d2lzZS1vbGQtb3dsLTE4MTU= in base64"))
	fmt.Println(r.String("AKIAIOSFODNN7EXAMPLE"))
	// Output:
	// key=[REDACTED:env:ANTHROPIC_API_KEY]
	// [REDACTED:env:ANTHROPIC_API_KEY] in base64
	// [REDACTED:pattern:aws]
}

// What was valid JSON stays valid.
func ExampleRedactor_JSON() {
	r := redact.New(redact.Config{Extra: map[string]string{"TOKEN": `a"quoted"one`}})
	fmt.Println(string(r.JSON([]byte(`{"text":"it is a\"quoted\"one","n":1}`))))
	// Output:
	// {"text":"it is [REDACTED:env:TOKEN]","n":1}
}

// A stream is redacted across the borders of its writes.
func ExampleRedactor_Writer() {
	r := redact.New(redact.Config{Extra: map[string]string{"TOKEN": "correct horse battery"}})
	w := r.Writer(os.Stdout)
	for _, piece := range []string{"say corre", "ct hor", "se battery now\n"} {
		if _, err := w.Write([]byte(piece)); err != nil {
			fmt.Println(err)
		}
	}
	if err := w.Close(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// say [REDACTED:env:TOKEN] now
}
