package skill

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// The bounds of a skill whose files are all read for its digest.
const (
	maxFiles = 2000
	maxTree  = 64 << 20
)

// Digest names the content of a skill with all its files: names, contents, and which of them are
// programs. Symlinks count by where they point and are not followed.
func Digest(root *os.Root, dir string) (string, error) {
	sum, files, size := sha256.New(), 0, int64(0)
	err := fs.WalkDir(root.FS(), dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative := strings.TrimPrefix(strings.TrimPrefix(name, dir), "/")
		switch files++; {
		case files > maxFiles || size > maxTree:
			return fmt.Errorf("%s holds more than %d files or %d MiB", dir, maxFiles, maxTree>>20)
		case entry.Type()&fs.ModeSymlink != 0 && relative != "":
			target, err := root.Readlink(name)
			fmt.Fprintf(sum, "link %q %q\n", relative, target)
			return err
		case !entry.Type().IsRegular():
			return nil
		}
		n, err := hashFile(sum, root, name, relative)
		size += n
		return err
	})
	if err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// hashFile adds a file to a digest and returns its size.
func hashFile(sum io.Writer, root *os.Root, name, relative string) (int64, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, err
	}
	fmt.Fprintf(sum, "file %q %v %d\n", path.Clean(relative), info.Mode()&0o100 != 0, info.Size())
	return io.Copy(sum, io.LimitReader(file, maxTree))
}
