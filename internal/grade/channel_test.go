package grade

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
)

// All that was written is read, however late, also where a process that cannot be killed holds the
// other side; what it writes later is refused.
func TestAChannelIsReadToItsEndWhoeverHoldsIt(t *testing.T) {
	c, err := openChannel()
	if err != nil {
		t.Fatal(err)
	}
	number, err := syscall.Dup(int(c.childEnd.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	held := os.NewFile(uintptr(number), "held")
	defer held.Close()
	written := strings.Repeat("{\"test\":\"a\",\"pass\":true}\n", 1000)
	if _, err := io.WriteString(held, written); err != nil {
		t.Fatal(err)
	}
	if data, overflow := c.close(); string(data) != written || overflow {
		t.Errorf("%d of %d bytes were read, overflow %v", len(data), len(written), overflow)
	}
	if _, err := io.WriteString(held, written); err == nil {
		t.Error("rows can be written when the grading is over")
	}
}
