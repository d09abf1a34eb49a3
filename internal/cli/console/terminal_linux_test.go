package console

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a terminal of so many columns, and what is on its screen.
func terminal(t *testing.T, columns uint16) (tty *os.File, screen *bufio.Reader) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = tty.Close() })
	return tty, bufio.NewReader(master)
}

// Notes and errors are broken between words where the terminal ends, and a line that is written
// over never fills a second one.
func TestStandardErrorFitsTheTerminal(t *testing.T) {
	tty, screen := terminal(t, 40)
	con := (&Console{Stdout: os.Stdout, Stderr: tty}).Shared()
	if !con.StderrIsTerminal() {
		t.Fatal("standard error is no terminal")
	}
	con.Status(strings.Repeat("1234567890", 5))
	fmt.Fprintln(con.Stderr)
	fmt.Fprintln(con.Stderr, "note: this line has more words than the forty columns can hold")
	for _, want := range []string{
		redraw + strings.Repeat("1234567890", 4)[:38] + "…",
		"note: this line has more words than the",
		"  forty columns can hold",
	} {
		line, err := screen.ReadString('\n')
		if got := strings.TrimRight(line, "\r\n"); err != nil || got != want {
			t.Errorf("the screen shows %q (%v), not %q", got, err, want)
		}
	}
}
