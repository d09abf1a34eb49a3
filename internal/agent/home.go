package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/internal/lazyregexp"
)

// MakeHome creates the directories of a session's home, readable only by us.
func MakeHome(dirs ...string) error {
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("prepare agent home: %w", err)
		}
	}
	return nil
}

var plainID = lazyregexp.New(`^[0-9A-Za-z-]+$`)

// FindRecord finds an agent's own record of a conversation below a directory, by a pattern in which
// %s stands for the conversation's id; empty if there is none.
func FindRecord(dir, pattern, id string) string {
	if !plainID.MatchString(id) {
		return "" // the id comes from the program and is used in a path
	}
	found := glob.Below(dir, fmt.Sprintf(pattern, id))
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

// WriteHome writes a file at a path below the home of a session. The agent may have left a link or
// a pipe there, or on the way: no link is followed out of the home, and anything in place of the
// file is replaced.
func WriteHome(home, path string, content []byte) error {
	if err := writeBelow(home, path, content); err != nil {
		return fmt.Errorf("prepare agent home: %w", err)
	}
	return nil
}

func writeBelow(home, path string, content []byte) error {
	name, err := filepath.Rel(home, path)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(home)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	if err := root.RemoveAll(name); err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}
