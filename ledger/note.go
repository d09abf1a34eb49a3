package ledger

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/internal/atomicfile"
)

// note is kept beside a ledger: the hash of its last line and its length. The chain alone cannot
// show that lines are missing at the end, or that all were sealed again.
type note struct {
	Head  string `json:"head"`
	Bytes int64  `json:"bytes"`
	// Next and NextBytes are the head and the length with one more record, which was about to be
	// written. A writer with a key announces every record, so that one more is not taken for one
	// that was written by a writer that was killed.
	Next      string `json:"next,omitempty"`
	NextBytes int64  `json:"nextBytes,omitempty"`
	// Plan is the digest of the plan that the records belong to, where the writer was told.
	Plan string `json:"plan,omitempty"`
	// Key and Signature are there where the writer had a key.
	Key       string `json:"key,omitempty"`
	Signature string `json:"signature,omitempty"`
}

func notePath(path string) string {
	return filepath.Join(filepath.Dir(path), NoteFile(filepath.Base(path)))
}

// NoteFile returns the name of the file beside a ledger that holds its head and the signature.
func NoteFile(name string) string { return "." + name + ".head" }

func writeNote(path string, n note) error {
	content, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(notePath(path), 0o600, content, []byte{'\n'}); err != nil {
		return fmt.Errorf("note the head of the ledger: %w", err)
	}
	return nil
}

// readNote returns the note of a ledger; nil where there is none, such as beside a ledger that was
// downloaded alone, and where a crash has damaged it.
func readNote(path string) *note {
	content, err := os.ReadFile(notePath(path))
	if err != nil {
		return nil
	}
	var n note
	if json.Unmarshal(content, &n) != nil || n.Head == "" {
		return nil
	}
	return &n
}

// Plan returns the digest of the plan that was beside the ledger when it was written last; empty
// where nobody noted it.
func (c *Contents) Plan() string {
	if c.noted == nil {
		return ""
	}
	return c.noted.Plan
}

// follow remembers, while a ledger is read, what it was where the note says that it ended.
func (c *Contents) follow() {
	switch n := c.noted; {
	case n == nil:
	case c.bytes == n.Bytes:
		c.headAtNote, c.recordsNoted = c.Head, c.records
	case n.NextBytes > 0 && c.bytes == n.NextBytes && c.Head == n.Next:
		c.recordsNoted = c.records
	}
}

// checkNote compares what was read with the note. The ledger may have grown since, by a writer that
// was killed; it cannot have shrunk, and the line that was the last must still be what it was. A
// signature holds only for the records that existed when it was made.
func (c *Contents) checkNote() {
	n := c.noted
	if n == nil {
		return
	}
	problem := func(kind, format string, args ...any) {
		c.Problems = append(c.Problems, Problem{Line: c.Lines, Kind: kind, Message: fmt.Sprintf(format, args...)})
	}
	switch {
	case c.bytes < n.Bytes:
		c.Lines++ // what is missing comes after the last line
		problem(Removed, "the ledger had %d bytes when it was closed and has %d now", n.Bytes, c.bytes)
		c.Lines--
	case n.Bytes > 0 && c.headAtNote != n.Head:
		problem(Changed, "the lines are not those that were written: they were sealed again")
	case n.Key == "" && n.Signature == "":
	case !n.signed():
		problem(Changed, "the signature of the ledger's head is not valid")
	case c.records == c.recordsNoted:
		c.SignedBy = n.Key
	}
}
