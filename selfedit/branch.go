package selfedit

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/glob"
)

// checkBranch is the second safeguard: it returns the branch the repository is on, or refuses it.
func checkBranch(repo repository, home homeDirs) (head, error) {
	current, err := repo.readHead()
	if errors.Is(err, errUnborn) {
		return head{}, outOfScope("failed to read the current git branch: branch '%s' has no commit yet",
			display.Name(current.branch))
	}
	if err != nil {
		return head{}, outOfScope("failed to read the current git branch: %v", err)
	}
	if current.branch == "" {
		return head{}, outOfScope("HEAD of %s is detached; switch to a feature branch first", display.Name(repo.top))
	}
	protected, err := protectedBranches(repo, home)
	if err != nil {
		return head{}, err
	}
	for _, name := range append([]string{current.branch}, current.aliases...) {
		for _, rule := range protected {
			if rule.covers(name) {
				return head{}, outOfScope("%s is on branch '%s', which %s; switch to a feature branch first",
					display.Name(repo.top), display.Name(name), rule.reason)
			}
		}
	}
	return current, nil
}

// protectedBranch is a branch that must not be edited on. Names are compared without regard to
// letter case, because file systems do that to refs.
type protectedBranch struct {
	name    string
	pattern glob.Pattern
	reason  string
}

func (p protectedBranch) covers(branch string) bool {
	folded := foldName(branch)
	return folded == foldName(p.name) || p.pattern.Match(folded)
}

func protectedBranches(repo repository, home homeDirs) ([]protectedBranch, error) {
	protected := []protectedBranch{
		{name: "main", reason: "is always protected"},
		{name: "master", reason: "is always protected"},
	}
	defaults, err := repo.remoteDefaults()
	if err != nil {
		return nil, outOfScope("failed to read the default branch of a remote: %v", err)
	}
	for _, name := range defaults {
		protected = append(protected, protectedBranch{name: name, reason: "is the default branch of a remote"})
	}
	configured, err := configuredBranches(repo, home)
	if err != nil {
		return nil, err
	}
	return append(protected, configured...), nil
}

// configuredBranches reads fit.selfedit.protectedBranches from every configuration file git would
// read, whatever the letter case: it can only add.
func configuredBranches(repo repository, home homeDirs) ([]protectedBranch, error) {
	files := []string{filepath.Join(repo.commonDir, "config"), filepath.Join(repo.gitDir, "config.worktree"),
		"/etc/gitconfig"}
	entries, err := readConfigFiles(append(files, home.gitConfigs()...), home.dirs)
	if err != nil {
		return nil, outOfScope("%v", err)
	}
	var protected []protectedBranch
	for _, entry := range entries {
		if entry.section != "fit" || !strings.EqualFold(entry.subsection, "selfedit") ||
			entry.key != "protectedbranches" {
			continue
		}
		for name := range strings.FieldsFuncSeq(entry.value,
			func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' }) {
			rule := protectedBranch{name: strings.TrimPrefix(name, "refs/heads/"),
				reason: "fit.selfedit.protectedBranches protects"}
			if strings.ContainsAny(name, "*?[") {
				if rule.pattern, err = glob.Compile(foldName(rule.name)); err != nil {
					return nil, outOfScope("fit.selfedit.protectedBranches: %v", err)
				}
			}
			protected = append(protected, rule)
		}
	}
	return protected, nil
}

// homeDirs are the places where a person's own git configuration may be.
type homeDirs struct {
	dirs []string
	// xdgConfig is the value of XDG_CONFIG_HOME, if it is set.
	xdgConfig string
}

func (h homeDirs) gitConfigs() []string {
	var paths []string
	for _, dir := range h.dirs {
		paths = append(paths, filepath.Join(dir, ".gitconfig"), filepath.Join(dir, ".config", "git", "config"))
	}
	if h.xdgConfig != "" {
		paths = append(paths, filepath.Join(h.xdgConfig, "git", "config"))
	}
	return paths
}
