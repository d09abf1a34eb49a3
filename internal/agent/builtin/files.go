package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// readLimit is the largest file that is read or edited.
const readLimit = 16 << 20

// defaultLines is how much of a file is read at once by default.
const defaultLines = 2000

type readInput struct {
	FilePath string `json:"file_path"`
	Offset   int    `json:"offset"`
	Limit    int    `json:"limit"`
}

func (c *conversation) read(_ context.Context, in readInput) (string, error) {
	content, path, err := c.loadFile(in.FilePath)
	if err != nil {
		return "", err
	}
	if bytes.IndexByte(content[:min(len(content), 8192)], 0) >= 0 {
		return "", fmt.Errorf("%s is not a text file", path)
	}
	if len(content) == 0 {
		return "(the file is empty)", nil
	}
	lines := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	first := max(in.Offset, 1)
	if first > len(lines) {
		return "", fmt.Errorf("%s has %d lines; there is no line %d", path, len(lines), first)
	}
	limit := in.Limit
	if limit <= 0 {
		limit = defaultLines
	}
	last := min(len(lines), first+limit-1)
	var out strings.Builder
	for i := first; i <= last; i++ {
		fmt.Fprintf(&out, "%6d\t%s\n", i, lines[i-1])
	}
	if last < len(lines) {
		fmt.Fprintf(&out, "(%d more lines)\n", len(lines)-last)
	}
	return out.String(), nil
}

// loadFile reads one file of the working directory whole.
func (c *conversation) loadFile(name string) (content []byte, path string, err error) {
	path, err = c.inside(name)
	if err != nil {
		return nil, "", err
	}
	info, err := c.root.Stat(path)
	if err != nil {
		return nil, path, plainError(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, path, fmt.Errorf("%s is not a regular file", path)
	}
	if info.Size() > readLimit {
		return nil, path, fmt.Errorf("%s has %d bytes, more than the %d that can be read", path, info.Size(), readLimit)
	}
	file, err := c.root.Open(path)
	if err != nil {
		return nil, path, plainError(path, err)
	}
	defer file.Close()
	content, err = io.ReadAll(io.LimitReader(file, readLimit))
	return content, path, err
}

type writeInput struct {
	FilePath string `json:"file_path"`
	Content  string `json:"content"`
}

func (c *conversation) write(_ context.Context, in writeInput) (string, error) {
	path, err := c.inside(in.FilePath)
	if err != nil {
		return "", err
	}
	if path == "." {
		return "", errors.New("file_path is missing")
	}
	if dir := filepath.Dir(path); dir != "." {
		if err := c.root.MkdirAll(dir, 0o755); err != nil {
			return "", plainError(dir, err)
		}
	}
	if err := c.save(path, []byte(in.Content)); err != nil {
		return "", err
	}
	return fmt.Sprintf("wrote %d bytes to %s", len(in.Content), path), nil
}

func (c *conversation) save(path string, content []byte) error {
	mode := fs.FileMode(0o644)
	if info, err := c.root.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	file, err := c.root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return plainError(path, err)
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err != nil {
		return plainError(path, err)
	}
	return nil
}

type editInput struct {
	FilePath   string `json:"file_path"`
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all"`
}

func (c *conversation) edit(_ context.Context, in editInput) (string, error) {
	if in.OldString == "" || in.OldString == in.NewString {
		return "", errors.New("old_string must not be empty and must differ from new_string")
	}
	content, path, err := c.loadFile(in.FilePath)
	if err != nil {
		return "", err
	}
	count := strings.Count(string(content), in.OldString)
	switch {
	case count == 0:
		return "", fmt.Errorf("old_string does not occur in %s", path)
	case count > 1 && !in.ReplaceAll:
		return "", fmt.Errorf("old_string occurs %d times in %s; give more of its surroundings, or set replace_all",
			count, path)
	}
	if err := c.save(path, []byte(strings.ReplaceAll(string(content), in.OldString, in.NewString))); err != nil {
		return "", err
	}
	return fmt.Sprintf("replaced %d occurrence(s) in %s", count, path), nil
}
