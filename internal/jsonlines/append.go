package jsonlines

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// AppendNew adds lines to a file, each once: those that it has already are left out.
func AppendNew(path string, lines [][]byte) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	there, err := readRegular(file)
	if err == nil {
		_, err = file.Write(newLines(there, lines))
	}
	return errors.Join(err, file.Close())
}

// readRegular reads a regular file: a device may have no end.
func readRegular(file *os.File) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", file.Name())
	}
	return io.ReadAll(io.LimitReader(file, info.Size()))
}

// newLines returns the lines that a file does not have yet, in the form to append.
func newLines(there []byte, lines [][]byte) []byte {
	seen := map[string]bool{}
	for line := range bytes.Lines(there) {
		seen[string(bytes.TrimSpace(line))] = true
	}
	var out []byte
	if len(there) > 0 && !bytes.HasSuffix(there, []byte("\n")) {
		out = append(out, '\n')
	}
	for _, line := range lines {
		if !seen[string(line)] {
			out = append(append(out, line...), '\n')
		}
	}
	return out
}
