package task

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/fit-eval/fit/internal/tree"
)

// entry is one file, directory or symlink of a tree.
type entry struct {
	tree.Entry
	source string // where it lies on disk
}

// walkTree lists a tree in a fixed order, without following symlinks in it. A tree that does not
// exist is empty.
func walkTree(dir string, skip func(rel string) bool) ([]entry, error) {
	if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, nil
	}
	found, err := tree.Walk{Skip: skip}.List(dir)
	entries := make([]entry, len(found))
	for i, e := range found {
		entries[i] = entry{e, filepath.Join(dir, filepath.FromSlash(e.Path))}
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.Path, b.Path) })
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
		name := path.Join(prefix, e.Path)
		switch {
		case e.IsLink():
			d.add(name, "link", []byte(e.Target))
		case e.IsRegular():
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
	sum, _, err := tree.Sum(e.source)
	if err != nil {
		return err
	}
	kind := "file"
	if e.IsProgram() {
		kind = "executable"
	}
	fmt.Fprintf(d.sum, "%s\x00%s\x00%s\n", norm.NFC.String(name), kind, sum)
	return nil
}

func (d *digester) String() string { return "sha256:" + hex.EncodeToString(d.sum.Sum(nil)) }

func isGenerated(rel string) bool { return path.Base(rel) == ".git" || tree.Leftover(rel) != "" }

// merged returns the tree that overlays make up together: later entries win.
type merged map[string]entry

func (m merged) add(to string, entries []entry) {
	for dir := to; dir != "" && dir != "."; dir = path.Dir(dir) {
		m[dir] = entry{Entry: tree.Entry{Path: dir, Mode: fs.ModeDir}}
	}
	for _, e := range entries {
		m[path.Join(to, e.Path)] = e
	}
}

var errDangling = errors.New("leads nowhere")

// follow resolves a symlink as the kernel would, including others on the way.
func (m merged) follow(link string) error {
	end, err := tree.Follow(link, func(name string) (string, error) {
		e, ok := m[name]
		if !ok {
			return "", errDangling
		}
		return e.Target, nil
	})
	if err == nil && path.IsAbs(end) {
		err = tree.ErrOutside
	}
	return err
}
