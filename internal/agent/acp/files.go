package acp

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/fit-eval/fit/internal/jsontape"
)

// maxFile bounds what is read for the agent at once.
const maxFile = 16 << 20

var errOutside = errors.New("only files of the workspace are served")

// workspaceFile opens the workspace, so that no path and no link leads out of it, and returns the
// path within it.
func (c *conversation) workspaceFile(path string) (*os.Root, string, error) {
	dir, err := filepath.EvalSymlinks(c.cfg.Dir)
	if err != nil {
		return nil, "", errOutside
	}
	var inside string
	for _, base := range []string{c.cfg.Dir, dir} {
		if relative, err := filepath.Rel(base, path); err == nil && filepath.IsLocal(relative) {
			inside = relative
		}
	}
	if inside == "" || !filepath.IsAbs(path) {
		return nil, "", errOutside
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", errOutside
	}
	return root, inside, nil
}

func (c *conversation) readFile(params jsontape.Value) (any, *messageError) {
	root, path, err := c.workspaceFile(params.TextOf("path"))
	if err != nil {
		return nil, refusal(err)
	}
	defer root.Close()
	file, err := openRegular(root, path, os.O_RDONLY)
	if err != nil {
		return nil, refusal(err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = errors.New("the file is too long")
	}
	if err != nil {
		return nil, refusal(err)
	}
	return object{"content": lines(string(content), params.Get("line").Int(), params.Get("limit").Int())}, nil
}

// lines returns limit lines of a text from first on, counted from 1; without a limit all.
func lines(text string, first, limit int) string {
	all := strings.SplitAfter(text, "\n")
	from := min(max(0, first-1), len(all))
	to := len(all)
	if limit > 0 {
		to = min(to, from+limit)
	}
	return strings.Join(all[from:to], "")
}

func (c *conversation) writeFile(params jsontape.Value) (any, *messageError) {
	root, path, err := c.workspaceFile(params.TextOf("path"))
	if err != nil {
		return nil, refusal(err)
	}
	defer root.Close()
	if slices.Contains(c.cfg.Isolation.ReadOnly, c.cfg.Dir) {
		return nil, refusal(errors.New("the workspace is read-only"))
	}
	if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, refusal(err)
	}
	file, err := openRegular(root, path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, refusal(err)
	}
	_, err = file.WriteString(params.TextOf("content"))
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, refusal(err)
	}
	return object{}, nil
}

// openRegular opens a file without blocking on a pipe.
func openRegular(root *os.Root, path string, flags int) (*os.File, error) {
	file, err := root.OpenFile(path, flags|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, errors.New("not a regular file")
	}
	return file, nil
}

func refusal(err error) *messageError {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		err = path.Err
	}
	return &messageError{Code: codeInvalidParams, Message: err.Error()}
}
