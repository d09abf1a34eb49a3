package grade

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// systemDirs are where links of a working directory may lead: interpreters of virtual environments and the like. Nothing hidden lies there.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/alternatives", "/dev/null"}

// cutLinks removes links from a copy that lead out of it. A hook may read hidden material, so a link to the reference solution, planted where the hook
// looks for the agent's answer, would be graded as the agent's own.
func cutLinks(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(rel string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.Type()&fs.ModeSymlink == 0 {
			return nil
		}
		target, err := root.Readlink(rel)
		if err != nil {
			return err
		}
		if staysInside(rel, target) {
			return nil
		}
		return root.Remove(rel)
	})
}

// staysInside judges a link by its text. Steps up are counted from the link's real directory, so they must all come first: after a name that may itself be a link,
// nobody can tell where up is.
func staysInside(link, target string) bool {
	if filepath.IsAbs(target) {
		clean := path.Clean(target)
		return clean == target && slices.ContainsFunc(systemDirs, func(dir string) bool {
			return clean == dir || strings.HasPrefix(clean, dir+"/")
		})
	}
	depth := strings.Count(link, "/")
	named := false
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if depth--; named || depth < 0 {
				return false
			}
		default:
			named = true
		}
	}
	return true
}
