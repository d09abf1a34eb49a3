package view

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/trace"
)

// unpackFrom is the size of a packed trace that is worth unpacking: parts of smaller ones are found
// quickly enough by reading them from the start.
const unpackFrom = 1 << 20

// maxUnpacked bounds what one trace may unpack to.
const maxUnpacked = 64 << 30

// unpacked holds the traces that were unpacked into a temporary directory, so that parts of them
// can be read through an index.
type unpacked struct {
	mu    sync.Mutex
	dir   *scratch.Dir
	files map[string]*unpackedFile // by path, size and time of the packed file
}

type unpackedFile struct {
	once sync.Once
	path string
	err  error
}

// open returns a file with the content of a packed trace.
func (u *unpacked) open(ctx context.Context, packed string, info os.FileInfo) (string, error) {
	key := fmt.Sprintf("%s %d %d", packed, info.Size(), info.ModTime().UnixNano())
	u.mu.Lock()
	if u.dir == nil {
		dir, err := scratch.Make("", "fit-view-")
		if err != nil {
			u.mu.Unlock()
			return "", fmt.Errorf("unpack %s: %w", filepath.Base(packed), err)
		}
		u.dir, u.files = dir, map[string]*unpackedFile{}
	}
	file := u.files[key]
	if file == nil {
		file = &unpackedFile{path: filepath.Join(u.dir.Path, fmt.Sprintf("%d.ndjson", len(u.files)))}
		u.files[key] = file
	}
	u.mu.Unlock()
	file.once.Do(func() { file.err = unpackTo(packed, file.path) })
	if file.err != nil {
		return "", file.err
	}
	return file.path, ctx.Err()
}

func unpackTo(packed, to string) error {
	in, err := os.Open(packed)
	if err != nil {
		return err
	}
	defer in.Close()
	plain, done, err := trace.Unpack(bufio.NewReader(in))
	if err != nil {
		return err
	}
	defer done()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(plain, maxUnpacked))
	return errors.Join(err, out.Close())
}

func (u *unpacked) close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.dir == nil {
		return nil
	}
	dir := u.dir
	u.dir, u.files = nil, nil
	return dir.Remove()
}
