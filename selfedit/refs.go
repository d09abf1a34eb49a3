package selfedit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fit-eval/fit/internal/display"
)

// head is what HEAD says.
type head struct {
	// branch is the short name of the branch HEAD is on; empty if it is detached.
	branch string
	// aliases are further branches that the branch is a symbolic reference to: a commit would land
	// on the last of them.
	aliases []string
	// commit is the object id the branch points at.
	commit string
}

var errUnborn = errors.New("has no commit yet")

// maxSymbolic bounds how many symbolic references are followed; git's own limit is the same.
const maxSymbolic = 5

// readHead reads HEAD and follows it to a commit.
func (r *repository) readHead() (head, error) {
	if err := r.checkRefStorage(); err != nil {
		return head{}, err
	}
	text, err := readRegular(filepath.Join(r.gitDir, "HEAD"), maxGitFile)
	if err != nil {
		return head{}, err
	}
	target, commit, err := parseRef(text)
	if err != nil {
		return head{}, fmt.Errorf("HEAD of %s: %w", display.Name(r.gitDir), err)
	}
	if commit != "" {
		return head{commit: commit}, nil
	}
	var current head
	for range maxSymbolic {
		name, isBranch := strings.CutPrefix(target, "refs/heads/")
		if !isBranch {
			return head{}, fmt.Errorf("HEAD of %s leads to %s, which is no branch", display.Name(r.gitDir),
				display.Name(target))
		}
		if current.branch == "" {
			current.branch = name
		} else {
			current.aliases = append(current.aliases, name)
		}
		if target, current.commit, err = r.readRef(target); err != nil || current.commit != "" {
			return current, err
		}
	}
	return head{}, fmt.Errorf("HEAD of %s leads through too many symbolic references", display.Name(r.gitDir))
}

// readRef returns what a reference holds: the name of another one, or an object id.
func (r *repository) readRef(name string) (target, commit string, err error) {
	path := filepath.Join(r.commonDir, filepath.FromSlash(name))
	if linked := hasLinkBelow(r.commonDir, name); linked {
		return "", "", fmt.Errorf("the reference %s %w", display.Name(name), errLink)
	}
	text, err := readRegular(path, maxGitFile)
	if err == nil {
		return parseRef(text)
	}
	if info, statErr := os.Lstat(path); !isAbsent(err) && (statErr != nil || !info.IsDir()) {
		return "", "", err
	}
	packed, err := readRegular(filepath.Join(r.commonDir, "packed-refs"), maxPackedRefs)
	if err != nil && !isAbsent(err) {
		return "", "", err
	}
	if commit = findPackedRef(packed, name); commit == "" {
		return "", "", fmt.Errorf("%s %w", display.Name(name), errUnborn)
	}
	return "", commit, nil
}

// hasLinkBelow reports whether a directory on the way from dir to a reference is a symbolic link.
func hasLinkBelow(dir, name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		dir = filepath.Join(dir, part)
		if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

// parseRef reads the text of HEAD or of a loose reference.
func parseRef(text []byte) (target, commit string, err error) {
	line := firstLine(text)
	if symbolic, ok := strings.CutPrefix(line, "ref:"); ok {
		target = strings.TrimLeft(symbolic, " \t")
		if !isRefName(target) {
			return "", "", fmt.Errorf("%s is no name of a reference", display.Name(target))
		}
		return target, "", nil
	}
	if !isObjectID(line) {
		return "", "", errors.New("it holds neither a reference nor an object id")
	}
	return "", line, nil
}

// findPackedRef returns the object id of a reference in the text of a packed-refs file, or the
// empty string.
func findPackedRef(packed []byte, name string) string {
	for line := range bytes.Lines(packed) {
		id, ref, ok := strings.Cut(strings.TrimRight(string(line), "\r\n"), " ")
		if ok && ref == name && isObjectID(id) {
			return id
		}
	}
	return ""
}

// isRefName accepts what git accepts below refs/, so that a name can be made a path without leaving
// the git directory.
func isRefName(name string) bool {
	if !strings.HasPrefix(name, "refs/") || strings.Contains(name, "..") || strings.Contains(name, "@{") ||
		strings.ContainsAny(name, " ~^:?*[\\\x7f") {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") ||
			strings.HasSuffix(part, ".") {
			return false
		}
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' })
}

func isObjectID(text string) bool {
	if len(text) != 40 && len(text) != 64 {
		return false
	}
	return strings.Trim(text, "0123456789abcdef") == ""
}

// remoteDefaults returns the branches that refs/remotes/*/HEAD name.
func (r *repository) remoteDefaults() ([]string, error) {
	var branches []string
	remotes := filepath.Join(r.commonDir, "refs", "remotes")
	err := filepath.WalkDir(remotes, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			if isAbsent(err) {
				return nil
			}
			return err
		}
		if entry.Name() != "HEAD" || entry.IsDir() {
			return nil
		}
		text, err := readThroughLinks(path, maxGitFile)
		if err != nil {
			return err
		}
		target, _, err := parseRef(text)
		if err != nil || target == "" {
			return err
		}
		branches = append(branches, branchOfRemoteHead(filepath.ToSlash(filepath.Dir(path[len(r.commonDir)+1:])),
			target)...)
		return nil
	})
	return branches, err
}

// branchOfRemoteHead returns what the HEAD in a directory such as refs/remotes/origin can mean.
func branchOfRemoteHead(remote, target string) []string {
	if branch, ok := strings.CutPrefix(target, remote+"/"); ok {
		return []string{branch}
	}
	for _, prefix := range []string{"refs/heads/", "refs/remotes/"} {
		if branch, ok := strings.CutPrefix(target, prefix); ok {
			_, afterRemote, _ := strings.Cut(branch, "/")
			return []string{branch, afterRemote}
		}
	}
	return nil
}
