package size

import "testing"

func TestNonsenseIsAnError(t *testing.T) {
	for _, text := range []string{
		"", " ", "k", "1x", "1kk", "-1", "+1", "1..5k", "1e3", "9223372036854775808",
		"9999999TiB", "NaN", "Inf",
	} {
		if got, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %d, want an error", text, got)
		}
	}
}

func TestPlainNumbersAreNoError(t *testing.T) {
	if got, err := Parse("9223372036854775807"); err != nil || got != 9223372036854775807 {
		t.Errorf("got %d, %v", got, err)
	}
}
