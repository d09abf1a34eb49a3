// Package console is what every command shares with the person at the terminal: the three streams,
// the environment, the working directory, and the exit codes. Commands receive a Console instead of
// reaching for os.Stdout and os.Getenv, so that a test can run them in memory.
package console

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/price"
	"github.com/fit-eval/fit/redact"
)

// Console is the world a command may touch besides files.
type Console struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Environ holds the environment as KEY=value pairs; the last of two equal keys wins.
	Environ []string
	// Dir is the directory relative paths are resolved against; empty means the process's own.
	Dir string
	// Version is what --version prints.
	Version string
	// Now is the clock of what is recorded; nil is the system's.
	Now func() time.Time

	prices *price.Table // of a price file; nil is the built-in table
}

// System returns the console of the running process. Credentials in the environment are in it from
// here on, and no longer in what the kernel shows of the process to others.
func System(version string) *Console {
	names := append(redact.DefaultEnvVars(), strings.Split(os.Getenv("LIBHARNESS_REDACTION_ENV_VARS"), ",")...)
	if err := sandbox.HideVariables(names...); err != nil {
		fmt.Fprintln(os.Stderr, "warning:", err)
	}
	return &Console{
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
		Environ: os.Environ(),
		Version: version,
	}
}

// Getenv returns the value of an environment variable, or the empty string.
func (c *Console) Getenv(name string) string {
	value, _ := c.LookupEnv(name)
	return value
}

// LookupEnv returns the value of an environment variable and whether it is set.
func (c *Console) LookupEnv(name string) (string, bool) {
	for i := len(c.Environ) - 1; i >= 0; i-- {
		if key, value, ok := strings.Cut(c.Environ[i], "="); ok && key == name {
			return value, true
		}
	}
	return "", false
}

// Path resolves a path given on the command line against the console's directory.
func (c *Console) Path(path string) string {
	if path == "" || filepath.IsAbs(path) || c.Dir == "" {
		return path
	}
	return filepath.Join(c.Dir, path)
}

// StdoutIsTerminal reports whether a person is looking at standard output.
func (c *Console) StdoutIsTerminal() bool { return isTerminal(c.Stdout) }

// StderrIsTerminal reports whether a person is looking at standard error.
func (c *Console) StderrIsTerminal() bool { return isTerminal(c.Stderr) }

// defaultColumns is how wide text is where no terminal says how wide it is.
const defaultColumns = 100

// Columns is how wide text on standard output may be: COLUMNS, or what the terminal says.
func (c *Console) Columns() int { return c.columns(c.Stdout) }

func (c *Console) columns(stream io.Writer) int {
	if width, err := strconv.Atoi(c.Getenv("COLUMNS")); err == nil && width > 0 {
		return max(width, 40)
	}
	if file, ok := bare(stream).(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return max(width, 40)
		}
	}
	return defaultColumns
}

// Folded prints text in lines that fit the terminal, if it goes to one.
func (c *Console) Folded(write func(io.Writer) error) error {
	if !c.folds(c.Stdout) {
		return write(c.Stdout)
	}
	var text strings.Builder
	if err := write(&text); err != nil {
		return err
	}
	_, err := io.WriteString(c.Stdout, display.Fold(text.String(), c.Columns()))
	return err
}

// Foldedf prints a text as Folded does.
func (c *Console) Foldedf(format string, args ...any) error {
	return c.Folded(func(w io.Writer) error {
		_, err := fmt.Fprintf(w, format, args...)
		return err
	})
}

// folds reports whether the lines of a stream must fit: it goes to a terminal, or COLUMNS is set.
func (c *Console) folds(stream io.Writer) bool {
	return isTerminal(stream) || c.Getenv("COLUMNS") != ""
}

// Table aligns cells that are separated by tabs. Flush prints them.
type Table struct {
	strings.Builder
	con *Console
}

// Table is an empty table for standard output.
func (c *Console) Table() *Table { return &Table{con: c} }

// Flush prints the table in lines that fit the terminal.
func (t *Table) Flush() error {
	return t.con.Folded(func(w io.Writer) error {
		aligned := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		if _, err := io.WriteString(aligned, t.String()); err != nil {
			return err
		}
		return aligned.Flush()
	})
}

// Colour reports whether text on standard output may be coloured: only on a terminal, and never
// against NO_COLOR.
func (c *Console) Colour() bool {
	return c.StdoutIsTerminal() && c.Getenv("NO_COLOR") == "" && c.Getenv("TERM") != "dumb"
}

func isTerminal(w io.Writer) bool {
	file, ok := bare(w).(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// bare is a stream as the process has it.
func bare(w io.Writer) io.Writer {
	if folding, ok := w.(*foldingWriter); ok {
		return folding.w
	}
	return w
}
