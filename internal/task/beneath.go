package task

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/fit-eval/fit/internal/tree"
)

// beneath returns the path of a file or directory of a family without links. One that leads out of
// the family is a *tree.LinkError: its content is the user's, and would go to a model.
func (l *loader) beneath(rel string) (string, error) {
	name, err := tree.Beneath(l.root, path.Clean(filepath.ToSlash(rel)))
	if err != nil {
		return "", err
	}
	return filepath.Join(l.real, filepath.FromSlash(name)), nil
}

// at returns the path of a file or directory of the family without links; empty if there is none.
// It reports a link that leads out of the family.
func (l *loader) at(rel string) string {
	name, err := l.beneath(rel)
	if err != nil {
		l.refused(rel, err)
		return ""
	}
	return name
}

// dir returns the path of a directory of the family as at does; empty if there is none.
func (l *loader) dir(rel string) string {
	if name := l.at(rel); isDir(name) {
		return name
	}
	return ""
}

// refused reports an error about a link, once for each link.
func (l *loader) refused(rel string, err error) {
	link, ok := errors.AsType[*tree.LinkError](err)
	switch {
	case !ok || l.links[link.Link]:
		return
	case l.links == nil:
		l.links = map[string]bool{}
	}
	l.links[link.Link] = true
	l.wrong(rel, "the link %s leads out of the family, to %s; put what it leads to into the family", link.Link,
		link.Target)
}

// read returns the content of a regular file of the family. A pipe in its place does not make it
// wait.
func (l *loader) read(rel string) ([]byte, error) {
	name, err := l.beneath(rel)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: rel, Err: errors.New("not a regular file")}
	}
	return l.root.ReadFile(filepath.FromSlash(l.rel(name)))
}

// besides reports links among the files of a family that other packages open.
func (l *loader) besides() {
	for _, name := range []string{
		"package.json", "package-lock.json", "node_modules", "apm.yml", "apm.lock.yaml", ".claude/skills",
	} {
		l.at(name)
	}
	for _, pattern := range []string{"apm_modules/*", "apm_modules/*/*", "apm_modules/*/*/agents"} {
		found, _ := fs.Glob(l.root.FS(), pattern) // the pattern is right
		for _, name := range found {
			l.at(name)
		}
	}
}

// ownRepository checks a directory that a family names as a repository. That of a family which was
// fetched from elsewhere is its own: it knows nothing of this machine.
func (l *loader) ownRepository(dir string) error {
	rel, err := filepath.Rel(l.real, dir)
	if err == nil && filepath.IsLocal(rel) {
		if _, err = l.beneath(rel); errors.Is(err, fs.ErrNotExist) {
			err = nil // which is said elsewhere
		}
		return err
	}
	if l.fetched {
		return fmt.Errorf("%s is a directory of this machine, and the family comes from a git repository: name a URL, "+
			"or a directory of the family", dir)
	}
	return nil
}
