package task

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// entry is one file, directory or link of a tree.
type entry struct {
	path   string // slash-separated, relative to the tree
	mode   fs.FileMode
	target string // of a link
	source string // where it lies on disk
}

// generated are names of files and directories that tools make; they belong to no revision.
var generated = []string{".git", "node_modules", "apm_modules", "__pycache__", ".DS_Store"}

// walkTree lists a tree in a fixed order, without following links. A tree that does not exist is
// empty.
func walkTree(dir string, skip func(rel string) bool) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil || rel == "." {
			return err
		}
		rel = filepath.ToSlash(rel)
		if skip != nil && skip(rel) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		found := entry{path: rel, mode: info.Mode(), source: name}
		if info.Mode()&fs.ModeSymlink != 0 {
			if found.target, err = os.Readlink(name); err != nil {
				return err
			}
		}
		entries = append(entries, found)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) && len(entries) == 0 {
		return nil, nil
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return entries, err
}

// digester hashes named parts, so that no two different lists of parts give the same hash.
type digester struct{ sum hash.Hash }

func newDigester() *digester { return &digester{sha256.New()} }

func (d *digester) add(name, kind string, content []byte) {
	inner := sha256.Sum256(content)
	fmt.Fprintf(d.sum, "%s\x00%s\x00%x\n", norm.NFC.String(name), kind, inner)
}

// addTree adds every file and link of a tree below a prefix. Only the executable bit of the mode
// counts: the rest depends on who checked the files out.
func (d *digester) addTree(prefix string, entries []entry) error {
	for _, e := range entries {
		name := path.Join(prefix, e.path)
		switch {
		case e.mode.IsDir():
		case e.mode&fs.ModeSymlink != 0:
			d.add(name, "link", []byte(e.target))
		case e.mode.IsRegular():
			if err := d.addFile(name, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// addDir adds a directory below a prefix, without what skip leaves out.
func (d *digester) addDir(prefix, dir string, skip func(rel string) bool) error {
	entries, err := walkTree(dir, skip)
	if err != nil {
		return err
	}
	return d.addTree(prefix, entries)
}

func (d *digester) addFile(name string, e entry) error {
	file, err := os.Open(e.source)
	if err != nil {
		return err
	}
	defer file.Close()
	inner := sha256.New()
	if _, err := io.Copy(inner, file); err != nil {
		return err
	}
	kind := "file"
	if e.mode&0o111 != 0 {
		kind = "executable"
	}
	fmt.Fprintf(d.sum, "%s\x00%s\x00%x\n", norm.NFC.String(name), kind, inner.Sum(nil))
	return nil
}

func (d *digester) String() string { return "sha256:" + hex.EncodeToString(d.sum.Sum(nil)) }

func isGenerated(rel string) bool { return slices.Contains(generated, path.Base(rel)) }

// merged returns the tree that overlays make up together: later entries win.
type merged map[string]entry

func (m merged) add(to string, entries []entry) {
	for dir := to; dir != "" && dir != "."; dir = path.Dir(dir) {
		m[dir] = entry{path: dir, mode: fs.ModeDir}
	}
	for _, e := range entries {
		m[path.Join(to, e.path)] = e
	}
}

var (
	errEscapes  = errors.New("leads out of the working directory")
	errDangling = errors.New("leads nowhere")
)

// follow resolves a link as the kernel would, including other links on the way.
func (m merged) follow(link string) error {
	pending := strings.Split(link, "/")
	var at []string
	for hops := 0; len(pending) > 0; {
		step := pending[0]
		pending = pending[1:]
		switch step {
		case "", ".":
			continue
		case "..":
			if len(at) == 0 {
				return errEscapes
			}
			at = at[:len(at)-1]
			continue
		}
		next := path.Join(path.Join(at...), step)
		e, ok := m[next]
		if !ok {
			return errDangling
		}
		if e.mode&fs.ModeSymlink == 0 {
			at = append(at, step)
			continue
		}
		if path.IsAbs(e.target) {
			return errEscapes
		}
		if hops++; hops > 40 {
			return errors.New("leads in a circle")
		}
		pending = append(strings.Split(e.target, "/"), pending...)
	}
	return nil
}
