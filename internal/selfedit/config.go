package selfedit

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"
)

// homeDirs are the places where a person's own git configuration may be.
type homeDirs struct {
	dirs []string
	// xdgConfig is the value of XDG_CONFIG_HOME, if it is set.
	xdgConfig string
	// files are further files of configuration.
	files []string
}

// configEntry is one variable of git's configuration. Its section and its last part are in lower
// case.
type configEntry struct{ key, value string }

// includedFile is the key under which config returns the path of every file that git's
// configuration includes, whether or not it exists: its author configures git.
const includedFile = "fit.included"

// maxIncludes bounds how many included configuration files are read for one question.
const maxIncludes = 64

// config returns every variable that git reads in this repository: its own, the system's, and those
// of every directory that may be home. A file that is included under a condition counts whether or
// not the condition holds now, which is safe because all that is asked of it can only add
// restrictions.
func (r *repository) config(ctx context.Context, home homeDirs) ([]configEntry, error) {
	var all []configEntry
	included := map[string]bool{}
	read := func(env []string, args ...string) error {
		entries, paths, err := readConfig(ctx, r.top, home.dirs, env, args...)
		all = append(all, entries...)
		for _, path := range paths {
			if _, known := included[path]; !known {
				included[path] = false
				all = append(all, configEntry{includedFile, path})
			}
		}
		return err
	}
	for _, env := range home.environments() {
		if err := read(env); err != nil {
			return nil, fmt.Errorf("reading the git configuration: %w", err)
		}
	}
	for _, path := range home.files {
		included[path] = false
		all = append(all, configEntry{includedFile, path})
	}
	// A worktree's own file counts whether or not the extension that makes git read it is set.
	included[filepath.Join(r.gitDir, "config.worktree")] = false
	for len(included) <= maxIncludes {
		path := ""
		for candidate, done := range included {
			if !done {
				path = candidate
			}
		}
		if path == "" {
			return all, nil
		}
		included[path] = true
		if _, err := readThroughLinks(path, maxGitFile); isAbsent(err) {
			continue
		}
		if err := read(home.environments()[0], "--includes", "--file", path); err != nil {
			return nil, fmt.Errorf("reading the git configuration: %w", err)
		}
	}
	return nil, fmt.Errorf("the git configuration includes more than %d files", maxIncludes)
}

// environments returns the environments in which git finds a person's own configuration. The
// system's is read in each.
func (h homeDirs) environments() [][]string {
	var all [][]string
	for _, dir := range h.dirs {
		all = append(all, []string{"GIT_CONFIG_NOSYSTEM=0", "HOME=" + dir})
	}
	if h.xdgConfig != "" || len(all) == 0 {
		all = append(all, []string{"GIT_CONFIG_NOSYSTEM=0", "HOME=/", "XDG_CONFIG_HOME=" + h.xdgConfig})
	}
	return all
}

// readConfig lists variables, and the files that are included, under a condition or not. What comes
// from our own command line is left out.
func readConfig(ctx context.Context, dir string, homes, env []string,
	args ...string,
) (entries []configEntry, included []string, err error) {
	args = append(append([]string{"config"}, args...), "--list", "--show-origin", "--null")
	said, err := ask(ctx, dir, env, args...)
	if err != nil || said == "" {
		return nil, nil, err
	}
	parts := strings.Split(strings.TrimSuffix(said, "\x00"), "\x00")
	for pair := range slices.Chunk(parts, 2) {
		if len(pair) != 2 || strings.HasPrefix(pair[0], "command line:") {
			continue
		}
		key, value, _ := strings.Cut(pair[1], "\n")
		entries = append(entries, configEntry{key, value})
		file, isFile := strings.CutPrefix(pair[0], "file:")
		if isFile &&
			(key == "include.path" || strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path")) {
			paths, err := expandHome(value, homes)
			if err != nil {
				return nil, nil, err
			}
			for _, path := range paths {
				included = append(included, resolveFrom(filepath.Dir(resolveFrom(dir, file)), path))
			}
		}
	}
	return entries, included, nil
}

// expandHome returns what a path that may start with ~/ can mean.
func expandHome(path string, homes []string) ([]string, error) {
	if !strings.HasPrefix(path, "~") {
		return []string{path}, nil
	}
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return nil, fmt.Errorf("the path %s is in the home directory of another user", display.Name(path))
	}
	expanded := make([]string, len(homes))
	for i, home := range homes {
		expanded[i] = filepath.Join(home, rest)
	}
	return expanded, nil
}

// hookDirs returns the directories whose files git runs as hooks, or copies to where it does,
// whichever configuration names them.
func (r *repository) hookDirs(config []configEntry, homes []string) ([]string, error) {
	dirs := []string{filepath.Join(r.commonDir, "hooks")}
	for _, entry := range config {
		if entry.key != "core.hookspath" && entry.key != "init.templatedir" || entry.value == "" {
			continue
		}
		paths, err := expandHome(entry.value, homes)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			dir := resolveFrom(r.top, path)
			dirs = append(dirs, dir)
			if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
				dirs = append(dirs, real)
			}
		}
	}
	return dirs, nil
}
