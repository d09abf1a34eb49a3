package judge

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Pages get places and questions as fields, and take no text apart.
func TestPagesGetFields(t *testing.T) {
	got := cited([]string{`calc.go:4 "return a + b"`, `src/a b.go:-7 "x := 1"`, `test-report "FAIL"`})
	want := []Citation{{File: "calc.go", Line: 4, Text: "return a + b"}, {File: "src/a b.go", Line: -7, Text: "x := 1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	item := Item{Question: "# Question: is it done?\n\nPass: yes.\n"}
	if question, guide := item.Asks(); question != "Is it done?" || guide != "Pass: yes." {
		t.Errorf("%q %q", question, guide)
	}
}
