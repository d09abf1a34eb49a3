package selfedit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fit-eval/fit/internal/display"
)

// repository is where git keeps what belongs to one working tree.
type repository struct {
	// top is the directory that holds .git.
	top string
	// gitDir is the working tree's own git directory: HEAD is in it. commonDir is shared by all
	// linked worktrees: branches and configuration are in it.
	gitDir, commonDir string
}

var errNoRepository = errors.New("is in no git repository")

// findRepository returns the repository that holds dir, which must be a path without links. Unlike
// git it does not pass over a .git that it cannot make sense of, because that could lead it to
// another repository than the one people mean.
func findRepository(dir string) (repository, error) {
	for current := dir; ; current = filepath.Dir(current) {
		info, err := os.Lstat(filepath.Join(current, ".git"))
		switch {
		case err == nil:
			return openRepository(current, info)
		case !isAbsent(err):
			return repository{}, err
		case current == filepath.Dir(current):
			return repository{}, fmt.Errorf("%s %w", display.Name(dir), errNoRepository)
		}
	}
}

func openRepository(top string, dotGit os.FileInfo) (repository, error) {
	repo := repository{top: top}
	link := filepath.Join(top, ".git")
	switch {
	case dotGit.IsDir():
		repo.gitDir = link
	case dotGit.Mode().IsRegular():
		text, err := readRegular(link, maxGitFile)
		if err != nil {
			return repo, err
		}
		target, ok := strings.CutPrefix(string(text), "gitdir: ")
		if target = strings.TrimRight(target, "\r\n"); !ok || target == "" {
			return repo, fmt.Errorf("%s does not name a git directory", display.Name(link))
		}
		repo.gitDir = resolveFrom(top, target)
	default:
		return repo, fmt.Errorf("%s is neither a directory nor a file", display.Name(link))
	}
	resolved, err := filepath.EvalSymlinks(repo.gitDir)
	if err != nil {
		return repo, err
	}
	repo.gitDir, repo.commonDir = resolved, resolved
	if err := repo.findCommonDir(); err != nil {
		return repo, err
	}
	return repo, repo.verify()
}

// findCommonDir follows the file by which a linked worktree names the git directory it shares. The
// worktree must point back at us: otherwise a stray .git file could borrow the branch of another
// worktree.
func (r *repository) findCommonDir() error {
	text, err := readRegular(filepath.Join(r.gitDir, "commondir"), maxGitFile)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	common, err := filepath.EvalSymlinks(resolveFrom(r.gitDir, strings.TrimRight(string(text), "\r\n")))
	if err != nil {
		return err
	}
	r.commonDir = common
	back, err := readRegular(filepath.Join(r.gitDir, "gitdir"), maxGitFile)
	if err != nil {
		return err
	}
	if !sameFile(resolveFrom(r.gitDir, strings.TrimRight(string(back), "\r\n")), filepath.Join(r.top, ".git")) {
		return fmt.Errorf("the worktree %s belongs to another directory (git worktree repair mends that)",
			display.Name(r.gitDir))
	}
	return nil
}

// verify makes sure that this looks like a git directory and that its configuration does not place
// the working tree elsewhere.
func (r *repository) verify() error {
	for _, name := range []string{"objects", "refs"} {
		if info, err := os.Lstat(filepath.Join(r.commonDir, name)); err != nil || !info.IsDir() {
			return fmt.Errorf("%s is not a git directory: it has no directory %s", display.Name(r.commonDir), name)
		}
	}
	entries, err := r.localConfig()
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.section != "core" || entry.subsection != "" || entry.key != "worktree" || r.gitDir != r.commonDir {
			continue
		}
		if tree := resolveFrom(r.gitDir, entry.value); !sameFile(tree, r.top) {
			return fmt.Errorf("the working tree of %s is %s and not %s", display.Name(r.gitDir), display.Name(tree),
				display.Name(r.top))
		}
	}
	return nil
}

// localConfig returns the variables of the repository's own configuration files.
func (r *repository) localConfig() ([]configEntry, error) {
	return readConfigFiles([]string{filepath.Join(r.commonDir, "config"), filepath.Join(r.gitDir, "config.worktree")},
		nil)
}

// checkRefStorage makes sure that refs are kept as files, the one way they are read here.
func (r *repository) checkRefStorage() error {
	entries, err := r.localConfig()
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.section == "extensions" && entry.key == "refstorage" && !strings.EqualFold(entry.value, "files") {
			return fmt.Errorf("%s stores its refs as %s, which cannot be read here", display.Name(r.commonDir),
				display.Name(entry.value))
		}
	}
	return nil
}

// hookDirs returns the directories whose files git runs as hooks.
func (r *repository) hookDirs(homes []string) ([]string, error) {
	dirs := []string{filepath.Join(r.commonDir, "hooks")}
	entries, err := r.localConfig()
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if entry.section != "core" || entry.subsection != "" || entry.key != "hookspath" || entry.value == "" {
			continue
		}
		for _, path := range expandHome(entry.value, homes) {
			dirs = append(dirs, resolveFrom(r.top, path))
		}
	}
	return dirs, nil
}

func resolveFrom(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// maxIncludes bounds how many configuration files are read for one question.
const maxIncludes = 64

// readConfigFiles reads configuration files and what they include. Conditions of includes are not
// evaluated: every included file counts, which is safe because all that is asked of it can only add
// restrictions. Files that are not there are passed over, as git does.
func readConfigFiles(paths, homes []string) ([]configEntry, error) {
	var all []configEntry
	seen := map[string]bool{}
	for len(paths) > 0 {
		path := paths[0]
		paths = paths[1:]
		if seen[path] {
			continue
		}
		if seen[path] = true; len(seen) > maxIncludes {
			return nil, fmt.Errorf("the git configuration includes more than %d files", maxIncludes)
		}
		text, err := readThroughLinks(path, maxGitFile)
		if isAbsent(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the git configuration: %w", err)
		}
		entries, err := parseGitConfig(text)
		if err != nil {
			return nil, fmt.Errorf("reading the git configuration %s: %w", display.Name(path), err)
		}
		all = append(all, entries...)
		for _, entry := range entries {
			if (entry.section == "include" || entry.section == "includeif") && entry.key == "path" &&
				entry.value != "" {
				for _, included := range expandHome(entry.value, homes) {
					paths = append(paths, resolveFrom(filepath.Dir(path), included))
				}
			}
		}
	}
	return all, nil
}

// expandHome returns what a path that may start with ~/ can mean.
func expandHome(path string, homes []string) []string {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return []string{path}
	}
	expanded := make([]string, len(homes))
	for i, home := range homes {
		expanded[i] = filepath.Join(home, rest)
	}
	return expanded
}

// firstLine returns a file's text up to the first line end.
func firstLine(text []byte) string {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return string(bytes.TrimRight(line, " \t\r"))
}
