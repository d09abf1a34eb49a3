package statscli

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/cli/console"
)

// maxTableBytes keeps a wrong file (a trace, a disk image) from filling the memory.
const maxTableBytes = 64 << 20

// line is one row of a table and where it stood.
type line struct {
	number int
	cells  []string
}

// readTable reads a file of rows; "-" is standard input. Cells are separated by tabs, commas or
// semicolons if the first row has any, else by spaces. Blank lines and lines that start with # are
// skipped.
func readTable(con *console.Console, path string) ([]line, error) {
	name, source := path, con.Stdin
	if path == "-" {
		name = "standard input"
		if source == nil {
			source = bytes.NewReader(nil)
		}
	} else {
		file, err := os.Open(con.Path(path))
		if err != nil {
			return nil, console.Usagef("%s: %w", path, pathless(err))
		}
		defer file.Close()
		if info, err := file.Stat(); err == nil && info.IsDir() {
			return nil, console.Usagef("%s is a directory: name a file of rows, or - for standard input", path)
		}
		source = file
	}
	data, err := io.ReadAll(io.LimitReader(source, maxTableBytes+1))
	switch {
	case err != nil:
		return nil, console.Usagef("%s: %w", name, pathless(err))
	case len(data) > maxTableBytes:
		return nil, console.Usagef("%s: larger than %d MB, too large for a table of results", name, maxTableBytes>>20)
	}
	rows, err := parseTable(data)
	if err != nil {
		return nil, console.Usagef("%s: %w", name, err)
	}
	if len(rows) == 0 {
		return nil, console.Usagef("%s: no rows", name)
	}
	return rows, nil
}

// pathless drops the path from an error, because the caller names the file.
func pathless(err error) error {
	if reason, ok := errors.AsType[*os.PathError](err); ok {
		return reason.Err
	}
	return err
}

func parseTable(data []byte) ([]line, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	scanner := bufio.NewScanner(bytes.NewReader(data))
	scanner.Buffer(nil, maxTableBytes)
	var rows []line
	separator := rune(0)
	for number := 1; scanner.Scan(); number++ {
		text := strings.TrimRight(scanner.Text(), "\r")
		if strings.TrimSpace(text) == "" || strings.HasPrefix(strings.TrimSpace(text), "#") {
			continue
		}
		if len(rows) == 0 {
			separator = separatorOf(text)
		}
		cells, err := splitCells(text, separator)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		rows = append(rows, line{number, cells})
	}
	if err := scanner.Err(); err != nil {
		return nil, err
	}
	return rows, nil
}

func separatorOf(text string) rune {
	for _, candidate := range "\t,;" {
		if strings.ContainsRune(text, candidate) {
			return candidate
		}
	}
	return ' '
}

func splitCells(text string, separator rune) ([]string, error) {
	if separator == ' ' {
		return strings.Fields(text), nil
	}
	reader := csv.NewReader(strings.NewReader(text))
	reader.Comma = separator
	reader.LazyQuotes = separator == '\t'
	cells, err := reader.Read()
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		return nil, parse.Err
	}
	if err != nil {
		return nil, err
	}
	for i, cell := range cells {
		cells[i] = strings.TrimSpace(cell)
	}
	return cells, nil
}

// isMissing recognises the usual ways to leave a cell empty.
func isMissing(cell string) bool {
	switch strings.ToLower(cell) {
	case "", "-", "na", "n/a", "null", "none", ".", "?":
		return true
	}
	return false
}

// number reads an outcome: a number, or a word for pass and fail.
func number(cell string) (float64, error) {
	switch strings.ToLower(cell) {
	case "pass", "passed", "true", "yes":
		return 1, nil
	case "fail", "failed", "false", "no":
		return 0, nil
	}
	value, err := strconv.ParseFloat(cell, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", cell)
	}
	return value, nil
}
