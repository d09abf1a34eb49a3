package grade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/internal/tree"
)

// maxStaged bounds one hidden file.
const maxStaged = 256 << 20

// place puts a file where the agent may have put anything else: a link, a file in the way of a
// directory, or a directory. Anything in the way is removed.
func place(root *os.Root, rel string, content []byte, mode fs.FileMode) error {
	rel = filepath.ToSlash(rel)
	if !filepath.IsLocal(rel) {
		return fmt.Errorf("%s is not inside the working directory", rel)
	}
	return tree.Write(root, rel, content, mode)
}

// hiddenFile reads a file of the hidden suite; links within the family were checked when it was
// loaded.
func hiddenFile(dir, rel string) ([]byte, fs.FileMode, error) {
	name := filepath.Join(dir, filepath.FromSlash(rel))
	info, err := os.Stat(name)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxStaged {
		return nil, 0, fmt.Errorf("%s is not a regular file, or is larger than %d bytes", name, maxStaged)
	}
	content, err := os.ReadFile(name)
	return content, info.Mode(), err
}

// stage puts a file of the hidden suite into a copy.
func stage(root *os.Root, suiteDir, rel string) error {
	content, mode, err := hiddenFile(suiteDir, rel)
	if err != nil {
		return err
	}
	return place(root, rel, content, mode)
}

// lay copies one of the author's own directories over another.
func lay(ctx context.Context, dir, from string) error {
	return tree.Copy{Over: tree.Replace, Follow: true}.Dir(ctx, from, dir)
}

// readReport reads a report that a command has left in a copy, if it is a regular file. No link is
// followed, and the size is limited.
func readReport(root *os.Root, rel string, limit int64) ([]byte, error) {
	info, err := root.Lstat(rel)
	if err != nil {
		return nil, errors.New("the command wrote no report")
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("the report is not a regular file")
	}
	file, err := root.Open(rel)
	if err != nil {
		return nil, errors.New("the report cannot be read")
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = errors.New("the report is too large")
	}
	return content, err
}
