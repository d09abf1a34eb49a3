package control

import (
	"fmt"
	"os"
)

// opened is a run directory that is named by its descriptor: the path of a socket has at most 107
// bytes, and paths of run directories may be longer.
type opened struct{ file *os.File }

func openDir(dir string) (opened, error) {
	file, err := os.Open(dir)
	return opened{file}, err
}

func (o opened) name(file string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", o.file.Fd(), file)
}

func (o opened) close() { _ = o.file.Close() }
