package benchmarkcli

import (
	"io/fs"
	"os"
	"path/filepath"
)

// overlayDir copies a family author's files over a working directory that no agent has seen.
func overlayDir(dir, from string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(dir, rel)
		switch {
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case entry.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			_ = os.Remove(target) // it need not be there
			return os.Symlink(link, target)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_ = os.Remove(target) // a file of another mode, or a link, makes place
		return os.WriteFile(target, content, info.Mode().Perm())
	})
}
