package ledger

import (
	"encoding/json"
	"fmt"
	"os"
)

func writeNote(path string, n note) error {
	content, err := json.Marshal(n)
	if err != nil {
		return err
	}
	temporary := notePath(path) + ".new"
	if err := os.WriteFile(temporary, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("note the length of the ledger: %w", err)
	}
	if err := os.Rename(temporary, notePath(path)); err != nil {
		return fmt.Errorf("note the length of the ledger: %w", err)
	}
	return nil
}

// checkNote compares a ledger with the note of its last orderly end. The ledger may have grown
// since, by a writer that was killed; it cannot have shrunk. A ledger without a note, such as one
// that was downloaded alone, is taken as it is.
func (c *Contents) checkNote(path string) {
	content, err := os.ReadFile(notePath(path))
	if err != nil {
		return
	}
	var n note
	if json.Unmarshal(content, &n) != nil || n.Head == "" {
		return // a note that a crash has spoilt says nothing
	}
	info, err := os.Stat(path)
	if err != nil {
		return
	}
	if info.Size() < n.Bytes {
		c.Problems = append(c.Problems, Problem{
			Line: c.Lines + 1, Kind: Removed,
			Message: fmt.Sprintf("the ledger had %d bytes when it was closed and has %d now", n.Bytes, info.Size()),
		})
	}
}
