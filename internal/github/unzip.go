package github

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Limits bound what an archive may hold.
type Limits struct {
	Files int
	Bytes int64 // of all files together, unpacked
}

// DefaultLimits leave room for the traces of a large team.
var DefaultLimits = Limits{Files: 10000, Bytes: 16 << 30}

// errUnsafe is returned for an archive with a member that no artifact needs.
var errUnsafe = errors.New("unsafe archive")

// Members lists the files of an archive, checked as Unzip checks them.
func Members(archive string, limits Limits) ([]string, error) {
	reader, err := zip.OpenReader(archive)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", filepath.Base(archive), err)
	}
	defer reader.Close()
	return check(reader.File, limits)
}

// Unzip unpacks an archive into a directory and returns the files it made, which only their owner
// can read. An archive with a single
// unsafe member is refused as a whole, before anything is written.
func Unzip(archive, dir string, limits Limits) ([]string, error) {
	reader, err := zip.OpenReader(archive)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", filepath.Base(archive), err)
	}
	defer reader.Close()
	names, err := check(reader.File, limits)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	left := limits.Bytes
	for _, member := range reader.File {
		if strings.HasSuffix(member.Name, "/") {
			continue
		}
		n, err := extract(root, member, left)
		if err != nil {
			return nil, fmt.Errorf("unpack %q: %w", member.Name, err)
		}
		left -= n
	}
	return names, nil
}

// check refuses names that leave the directory, links, devices, and archives that are too large.
func check(members []*zip.File, limits Limits) ([]string, error) {
	if len(members) > limits.Files {
		return nil, fmt.Errorf("%w: more than %d files", errUnsafe, limits.Files)
	}
	var names []string
	var total uint64
	for _, member := range members {
		name := member.Name
		if strings.Contains(name, `\`) || strings.ContainsRune(name, 0) ||
			!filepath.IsLocal(strings.TrimSuffix(name, "/")) || path.Clean(name) == "." {
			return nil, fmt.Errorf("%w: the name %q", errUnsafe, name)
		}
		mode := member.Mode()
		if mode.IsDir() || strings.HasSuffix(name, "/") {
			continue
		}
		if !mode.IsRegular() {
			return nil, fmt.Errorf("%w: %q is not a regular file", errUnsafe, name)
		}
		if total += member.UncompressedSize64; total > uint64(limits.Bytes) {
			return nil, fmt.Errorf("%w: more than %d bytes", errUnsafe, limits.Bytes)
		}
		names = append(names, path.Clean(name))
	}
	return names, nil
}

// extract writes one file. It does not trust the size in the archive.
func extract(root *os.Root, member *zip.File, left int64) (int64, error) {
	name := path.Clean(member.Name)
	if dir := path.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return 0, err
		}
	}
	if err := root.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	in, err := member.Open()
	if err != nil {
		return 0, errors.Join(err, out.Close())
	}
	n, err := io.Copy(out, io.LimitReader(in, left+1))
	err = errors.Join(err, in.Close(), out.Close())
	if err == nil && n > left {
		err = fmt.Errorf("%w: it unpacks to more than it may", errUnsafe)
	}
	return n, err
}
