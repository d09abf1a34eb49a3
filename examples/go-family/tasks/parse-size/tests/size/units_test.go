package size

import "testing"

func TestUnits(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "10": 10, "4k": 4000, "4K": 4000, "4ki": 4096, "3B": 3, "1MB": 1e6, "2GiB": 2 << 30, "1t": 1e12,
		"1TiB": 1 << 40,
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestBlanks(t *testing.T) {
	if got, err := Parse("  2 GiB\t"); err != nil || got != 2<<30 {
		t.Errorf("got %d, %v", got, err)
	}
}
