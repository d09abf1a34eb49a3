package plural

import "testing"

func TestMany(t *testing.T) {
	if got := Count(3, "file"); got != "3 files" {
		t.Errorf("got %q, want %q", got, "3 files")
	}
}

func TestOne(t *testing.T) {
	if got := Count(1, "file"); got != "1 file" {
		t.Errorf("got %q, want %q", got, "1 file")
	}
}
