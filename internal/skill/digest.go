package skill

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/fit-eval/fit/internal/tree"
)

// The bounds of a skill whose files are all read for its digest.
const (
	maxFiles = 2000
	maxTree  = 64 << 20
)

// Digest names the content of a skill with all its files: names, contents, and which of them are
// programs. Symlinks count by where they point and are not followed.
func Digest(root *os.Root, dir string) (string, error) {
	top, err := root.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer top.Close()
	sum, walk := sha256.New(), tree.Walk{MaxFiles: maxFiles, MaxBytes: maxTree}
	err = walk.Each(top, func(parent *os.Root, e tree.Entry) error {
		switch {
		case e.IsLink():
			fmt.Fprintf(sum, "link %q %q\n", e.Path, e.Target)
		case e.IsRegular():
			file, err := walk.Open(parent, path.Base(e.Path))
			if err != nil {
				return err
			}
			defer file.Close()
			fmt.Fprintf(sum, "file %q %v %d\n", e.Path, e.Mode&0o100 != 0, e.Size)
			_, err = io.CopyN(sum, file, e.Size)
			return err
		}
		return nil
	})
	if errors.As(err, new(*tree.LimitError)) {
		err = fmt.Errorf("%s holds more than %d files or %d MiB", dir, maxFiles, maxTree>>20)
	}
	if err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}
