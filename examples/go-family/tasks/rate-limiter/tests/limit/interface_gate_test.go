package limit

import (
	"testing"
	"time"
)

// The exported names are what others use.
var _ interface{ Allow() bool } = New(1, 1, time.Now)

func TestAnEventIsAllowedAtTheStart(t *testing.T) {
	if !New(1, 1, time.Now).Allow() {
		t.Error("the first event was refused")
	}
}
