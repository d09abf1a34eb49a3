package size

import "testing"

func TestFractions(t *testing.T) {
	for text, want := range map[string]int64{"1.5MB": 1_500_000, "0.5KiB": 512, ".5k": 500, "1.0": 1} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestFractionsOfABytesAreErrors(t *testing.T) {
	for _, text := range []string{"0.5", "1.0001k", "0.3KiB"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %d, want an error", text, got)
		}
	}
}
