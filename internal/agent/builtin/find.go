package builtin

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

const (
	maxFound     = 500     // files or lines that one search returns
	maxGrepFile  = 4 << 20 // larger files are not searched
	maxMatchLine = 400     // characters of a line that are shown
)

// errEnough ends a walk that has found enough.
var errEnough = errors.New("enough")

type globInput struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

func (c *conversation) glob(ctx context.Context, in globInput) (string, error) {
	if !doublestar.ValidatePattern(in.Pattern) {
		return "", fmt.Errorf("%q is not a valid pattern", in.Pattern)
	}
	type found struct {
		name  string
		mtime int64
	}
	var files []found
	err := c.walk(ctx, in.Path, func(name, rel string, info fs.FileInfo) error {
		if doublestar.MatchUnvalidated(in.Pattern, rel) {
			files = append(files, found{name, info.ModTime().UnixNano()})
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "no files match", nil
	}
	slices.SortStableFunc(files, func(a, b found) int { return int(min(1, max(-1, b.mtime-a.mtime))) })
	var out strings.Builder
	for i, file := range files {
		if i == maxFound {
			fmt.Fprintf(&out, "(%d more)\n", len(files)-i)
			break
		}
		fmt.Fprintln(&out, file.name)
	}
	return out.String(), nil
}

type grepInput struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Glob    string `json:"glob"`
}

func (c *conversation) grep(ctx context.Context, in grepInput) (string, error) {
	pattern, err := regexp.Compile(in.Pattern)
	if err != nil {
		return "", fmt.Errorf("pattern: %w", err)
	}
	if !doublestar.ValidatePattern(in.Glob) {
		return "", fmt.Errorf("%q is not a valid pattern", in.Glob)
	}
	var out strings.Builder
	matches := 0
	err = c.walk(ctx, in.Path, func(name, rel string, info fs.FileInfo) error {
		if info.Size() > maxGrepFile || (in.Glob != "" && !matchesGlob(in.Glob, rel)) {
			return nil
		}
		content, err := fs.ReadFile(c.root.FS(), name)
		if notTheModels(err) {
			return err
		}
		if err != nil || bytes.IndexByte(content[:min(len(content), 8192)], 0) >= 0 {
			return nil // unreadable and binary files have no lines to show
		}
		lines := bufio.NewScanner(bytes.NewReader(content))
		lines.Buffer(nil, maxGrepFile+1)
		for number := 1; lines.Scan(); number++ {
			if !pattern.Match(lines.Bytes()) {
				continue
			}
			fmt.Fprintf(&out, "%s:%d:%s\n", name, number, c.clip(lines.Text(), maxMatchLine))
			if matches++; matches == maxFound {
				fmt.Fprintln(&out, "(there are more matches)")
				return errEnough
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return "", err
	}
	if matches == 0 {
		return "no matches", nil
	}
	return out.String(), nil
}

// matchesGlob follows the convention that a pattern without a slash matches a name in any
// directory.
func matchesGlob(pattern, rel string) bool {
	if !strings.Contains(pattern, "/") {
		rel = path.Base(rel)
	}
	return doublestar.MatchUnvalidated(pattern, rel)
}

// walk visits the regular files below a path of the working directory, leaving out the version
// control's own. name is relative to the working directory, rel to the path.
func (c *conversation) walk(ctx context.Context, start string,
	visit func(name, rel string, info fs.FileInfo) error,
) error {
	base, err := c.inside(start)
	if err != nil {
		return err
	}
	base = filepath.ToSlash(base)
	return fs.WalkDir(c.root.FS(), base, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			if name == base || notTheModels(err) {
				return plainError(name, err)
			}
			return nil // unreadable files are skipped
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "node_modules") && name != base {
			return fs.SkipDir
		}
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			return nil
		}
		rel := strings.TrimPrefix(strings.TrimPrefix(name, base), "/")
		if base == "." {
			rel = name
		}
		return visit(name, cmp.Or(rel, path.Base(name)), info)
	})
}
