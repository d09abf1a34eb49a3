package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fit-eval/fit/internal/glob"
)

// repositories remembers what repositoriesOf has found, by directory.
var repositories sync.Map

// repositoriesOf returns the paths of a directory's repository, and of every one around it: the
// files, the history, which may be elsewhere, and the other directories into which the history is
// checked out. A directory outside any repository has none. Git itself is not asked, because it
// does not answer about a repository of another user.
func repositoriesOf(dir string) []string {
	if known, ok := repositories.Load(dir); ok {
		return known.([]string) //nolint:forcetypeassert // nothing else is stored
	}
	var dirs []string
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if history := historyOf(at); history != "" {
			dirs = append(dirs, at, history)
			dirs = append(dirs, sharedHistory(history)...)
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	repositories.Store(dir, dirs)
	return dirs
}

// historyOf returns the .git of a directory: the directory of that name, or the one that the file
// of that name points to.
func historyOf(dir string) string {
	path := filepath.Join(dir, ".git")
	if target, ok := strings.CutPrefix(firstLine(path), "gitdir:"); ok {
		return from(dir, strings.TrimSpace(target))
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return ""
	}
	return path
}

// sharedHistory returns what belongs to a history and is elsewhere: the history that a linked
// worktree shares with others, the directories of these others, and objects that are borrowed.
func sharedHistory(history string) []string {
	common := history
	if shared := firstLine(filepath.Join(history, "commondir")); shared != "" {
		common = from(history, shared)
	}
	dirs := []string{common}
	if filepath.Base(common) == ".git" {
		dirs = append(dirs, filepath.Dir(common))
	}
	for _, file := range glob.Below(common, "worktrees/*/gitdir") {
		if pointer := firstLine(file); pointer != "" {
			dirs = append(dirs, filepath.Dir(from(filepath.Dir(file), pointer)))
		}
	}
	return append(dirs, borrowed(filepath.Join(common, "objects"), 0)...)
}

// borrowed returns the stores of objects that another one borrows from, and those that they borrow
// from in turn, as deep as git follows them.
func borrowed(objects string, depth int) []string {
	data, err := os.ReadFile(filepath.Join(objects, "info", "alternates"))
	if err != nil || depth > 5 {
		return nil
	}
	var dirs []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		lender := from(objects, line)
		dirs = append(dirs, lender)
		dirs = append(dirs, borrowed(lender, depth+1)...)
	}
	return dirs
}

// firstLine returns the first line of a file; empty if it cannot be read.
func firstLine(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(line)
}

// from resolves a path that may be relative to a directory.
func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
