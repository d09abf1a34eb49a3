package selfedit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/display"
	"golang.org/x/sys/unix"
)

// plan is an edit that passed both safeguards, with open handles on the places they looked at.
type plan struct {
	// root is the settings' grandparent directory without links; rel the target relative to it;
	// target both joined.
	root, rel, target string
	rootDir           *directory
	// parent is the directory the target is in, or nil if it does not exist yet.
	parent *directory
	// old is the file that has the target's name now; it is only meaningful if exists.
	old      unix.Stat_t
	exists   bool
	settings settings
	rule     string
	repo     repository
	config   []configEntry
	head     head
}

func (p *plan) close() {
	for _, dir := range []*directory{p.rootDir, p.parent} {
		if dir != nil {
			dir.file.Close()
		}
	}
}

func (p *plan) base() string      { return path.Base(p.rel) }
func (p *plan) parentRel() string { return path.Dir(p.rel) }

// makePlan checks an edit against the safeguards. The caller closes the plan.
func makePlan(ctx context.Context, target string, home homeDirs) (*plan, error) {
	made := &plan{}
	repoErr, err := made.checkSettings(ctx, target, home)
	if err == nil {
		err = made.checkScope(ctx, repoErr)
	}
	if err != nil {
		made.close()
		return nil, err
	}
	return made, nil
}

// checkSettings is the first safeguard. It looks for the repository to know which deny rules count;
// a missing repository is left to the second.
func (p *plan) checkSettings(ctx context.Context, target string, home homeDirs) (repoErr, err error) {
	if !utf8.ValidString(target) || strings.ContainsFunc(target, unicode.IsControl) {
		return nil, notAllowed("the path %s is not valid text", display.Name(target))
	}
	if err := p.openRoot(target); err != nil {
		return nil, err
	}
	if err := checkProtectedName(p.target); err != nil {
		return nil, err
	}
	if p.rule, err = p.settings.matchAllow(p.rel); err != nil {
		return nil, err
	}
	if p.repo, repoErr = findRepository(ctx, filepath.Dir(p.target)); repoErr == nil {
		p.config, repoErr = p.repo.config(ctx, home)
	}
	err = p.checkDenials(repoErr == nil, home)
	if err == nil && repoErr == nil {
		err = p.checkGitOwned(home)
	}
	if err == nil {
		err = p.openParent()
	}
	return repoErr, err
}

// openRoot finds the settings nearest to the target and opens the directory their rules are
// relative to.
func (p *plan) openRoot(target string) error {
	lexical, err := findSettings(filepath.Dir(target))
	if err != nil {
		return err
	}
	if p.root, err = filepath.EvalSymlinks(lexical); err != nil {
		return notAllowed("failed to open the directory of the settings: %v", err)
	}
	rel, err := filepath.Rel(lexical, target)
	if err != nil {
		return notAllowed("%v", err)
	}
	p.rel = filepath.ToSlash(rel)
	p.target = filepath.Join(p.root, rel)
	file, err := os.OpenFile(p.root, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return notAllowed("failed to open the directory of the settings: %v", err)
	}
	p.rootDir = &directory{file: file}
	p.settings, err = p.readGrantingSettings()
	return err
}

func (p *plan) readGrantingSettings() (settings, error) {
	shown := filepath.Join(p.root, settingsName)
	fail := func(err error) (settings, error) {
		if errors.Is(err, errLink) {
			return settings{}, notAllowed("%s or its directory is a symbolic link", display.Name(shown))
		}
		return settings{}, notAllowed("failed to read %s: %v", display.Name(shown), err)
	}
	dir, err := p.rootDir.openDirectory(path.Dir(settingsName))
	if err != nil {
		return fail(err)
	}
	defer dir.file.Close()
	file, err := dir.open(path.Base(settingsName))
	if err != nil {
		return fail(err)
	}
	defer file.Close()
	text, err := readLimited(file, shown, maxSettingsFile)
	if err != nil {
		return fail(err)
	}
	return parseSettings(shown, p.root, text)
}

// checkDenials looks for deny rules and hooks in every settings file that applies.
func (p *plan) checkDenials(inRepository bool, home homeDirs) error {
	files := []settings{p.settings}
	besideRule, err := readDenials(p.root, p.root)
	if err != nil {
		return err
	}
	files = append(files, besideRule...)
	if inRepository {
		inRepo, err := readDenials(filepath.Dir(p.target), p.repo.top)
		if err != nil {
			return err
		}
		files = append(files, inRepo...)
	}
	for _, file := range files {
		if err := file.checkDeny(p.target, home.dirs); err != nil {
			return err
		}
		if err := p.checkNarrowing(file); err != nil {
			return err
		}
	}
	return checkHookScript(p.target, files)
}

// checkNarrowing makes sure that settings above the nearest ones allow the write as well: putting
// settings into a subdirectory must not give more rights there.
func (p *plan) checkNarrowing(file settings) error {
	if file.path != filepath.Join(file.root, settingsName) || file.root == p.root {
		return nil
	}
	rel, err := filepath.Rel(file.root, p.target)
	if err == nil {
		_, err = file.matchAllow(filepath.ToSlash(rel))
	}
	return err
}

// checkGitOwned refuses what git runs or keeps its state in, wherever the configuration has put
// that.
func (p *plan) checkGitOwned(home homeDirs) error {
	hooks, err := p.repo.hookDirs(p.config, home.dirs)
	if err != nil {
		return notAllowed("failed to find out where git's hooks are: %v", err)
	}
	for _, dir := range hooks {
		// A hooks path that is the working tree itself would make every file a hook; only its own
		// files are.
		if isBelow(p.target, dir) && (dir != p.repo.top || filepath.Dir(p.target) == dir) {
			return notAllowed("'%s' is a hook of git, and no rule can make hooks writable", display.Name(p.rel))
		}
	}
	for _, entry := range p.config {
		if entry.key == includedFile && names(entry.value, p.target) {
			return notAllowed("'%s' is part of git's configuration, and no rule can make it writable",
				display.Name(p.rel))
		}
		if runsProgram.MatchString(entry.key) && mayRun(entry.value, p.target, "") {
			return notAllowed("'%s' is a program that git runs (%s), and no rule can make it writable",
				display.Name(p.rel), display.Name(entry.key))
		}
	}
	for _, dir := range []string{p.repo.gitDir, p.repo.commonDir} {
		if isBelow(p.target, dir) {
			return notAllowed("'%s' belongs to git, and no rule can make it writable", display.Name(p.rel))
		}
	}
	return nil
}

// openParent opens the target's directory without following a link, and looks at what is in the
// target's place.
func (p *plan) openParent() error {
	if err := p.checkSpelling(); err != nil {
		return err
	}
	parent, err := openBeneath(p.rootDir, p.parentRel())
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return notAllowed("failed to open the directory of '%s': %v", display.Name(p.rel), err)
	}
	p.parent = parent
	p.old, err = parent.stat(p.base())
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return fmt.Errorf("looking at %s: %w", display.Name(p.rel), err)
	}
	p.exists = true
	return nil
}

// checkSpelling walks from the root to the target and refuses links, things that are not files, and
// names the file system knows by another spelling.
func (p *plan) checkSpelling() error {
	current := p.rootDir
	parts := strings.Split(p.rel, "/")
	for i, name := range parts {
		shown := display.Name(strings.Join(parts[:i+1], "/"))
		stat, err := current.stat(name)
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		last := i == len(parts)-1
		switch {
		case err != nil:
			return notAllowed("failed to look at '%s': %v", shown, err)
		case isLink(stat):
			return notAllowed("'%s' is a symbolic link, and links below %s are not followed", shown,
				display.Name(p.root))
		case last && !isRegular(stat) && !isDirectory(stat):
			return notAllowed("'%s' is not a regular file", shown)
		case !last && !isDirectory(stat):
			return notAllowed("'%s' is not a directory", shown)
		}
		if exact, err := current.spells(name); err != nil || !exact {
			return notAllowed("'%s' is stored under another spelling, which the rules were not checked for", shown)
		}
		if last {
			return nil
		}
		next, err := current.openDirectory(name)
		if err != nil {
			return notAllowed("failed to open '%s': %v", shown, err)
		}
		defer next.file.Close()
		current = next
	}
	return nil
}

// checkScope is the second safeguard.
func (p *plan) checkScope(ctx context.Context, repoErr error) (err error) {
	if repoErr != nil {
		return outOfScope("failed to read the current git branch: %v", repoErr)
	}
	if err := checkNotPlanted(ctx, p.repo); err != nil {
		return err
	}
	p.head, err = checkBranch(ctx, p.repo, p.config)
	return err
}

// recheck looks again, after the write, at what could have moved meanwhile: the directory and
// the branch.
func (p *plan) recheck(ctx context.Context, home homeDirs) error {
	now, err := openBeneath(p.rootDir, p.parentRel())
	if err != nil {
		return notAllowed("the directory of '%s' was moved or replaced during the write: %v", display.Name(p.rel), err)
	}
	defer now.file.Close()
	root, err := os.Stat(p.root)
	rootInfo, rootErr := p.rootDir.file.Stat()
	if !now.same(p.parent) || err != nil || rootErr != nil || !os.SameFile(root, rootInfo) {
		return notAllowed("the directory of '%s' was moved or replaced during the write", display.Name(p.rel))
	}
	repo, err := findRepository(ctx, filepath.Dir(p.target))
	var config []configEntry
	if err == nil {
		config, err = repo.config(ctx, home)
	}
	if err != nil {
		return outOfScope("failed to read the current git branch after the write: %v", err)
	}
	current, err := checkBranch(ctx, repo, config)
	if err != nil {
		return err
	}
	if repo != p.repo || current.branch != p.head.branch || current.commit != p.head.commit {
		return outOfScope("the branch moved during the write: it was '%s' at %.12s and is '%s' at %.12s",
			display.Name(p.head.branch), p.head.commit, display.Name(current.branch), current.commit)
	}
	return nil
}
