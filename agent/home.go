package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// WriteHome writes a file at a path below the home of a session. The agent may have left a link or
// a pipe there, or on the way: no link is followed out of the home, and what is in the place of the
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
