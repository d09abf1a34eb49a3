package skill

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/tree"
)

// CaseFile is a file or directory that a test case names.
type CaseFile struct {
	Name string // relative to the skill or its repository
	From string // where it is
	// OfSkill is set if it belongs to the skill itself: an agent without the skill must not get it.
	OfSkill bool
}

// The reasons why FindCaseFile finds nothing.
var (
	errLeadsOut = errors.New("leads out of the skill; copy it below evals/")
	errNowhere  = errors.New("is neither in the skill nor in its repository; add it, or take it out of files")
)

// FindCaseFile looks for a file of a test case in the skill, beside its test cases, and in the
// repository that the skill is part of. No link leads out of these, and what is private to the user
// of the repository is not found.
func FindCaseFile(dir, name string) (CaseFile, error) {
	name = path.Clean(filepath.ToSlash(name))
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return CaseFile{}, errLeadsOut
	}
	for _, own := range []string{name, path.Join("evals", name)} {
		at, err := usable(dir, own)
		switch {
		case err == nil && isTestFile(own):
			return CaseFile{Name: own, From: at}, refusePrivate(own, at, isOfGit)
		case err == nil:
			return CaseFile{Name: own, From: at, OfSkill: true}, nil
		case !errors.Is(err, errNowhere):
			return CaseFile{}, err
		}
	}
	for repository := dir; ; repository = filepath.Dir(repository) {
		if _, err := os.Lstat(filepath.Join(repository, ".git")); err == nil {
			at, err := usable(repository, name)
			if err != nil {
				return CaseFile{}, err
			}
			rel, err := filepath.Rel(dir, at)
			return CaseFile{
				Name:    name,
				From:    at,
				OfSkill: err == nil && filepath.IsLocal(rel) && !isTestFile(filepath.ToSlash(rel)),
			}, refusePrivate(name, at, isPrivate)
		}
		if filepath.Dir(repository) == repository {
			return CaseFile{}, errNowhere
		}
	}
}

// usable returns the path of a regular file or a directory below another one, without links on the
// way to it; it is none itself.
func usable(dir, name string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", errNowhere
	}
	defer root.Close()
	parent, err := tree.Beneath(root, path.Dir(name))
	if _, leadsOut := errors.AsType[*tree.LinkError](err); leadsOut {
		return "", err
	}
	at := filepath.Join(dir, filepath.FromSlash(path.Join(parent, path.Base(name))))
	info, statErr := os.Lstat(at)
	if err != nil || statErr != nil || !info.Mode().IsRegular() && !info.IsDir() {
		return "", errNowhere
	}
	return at, nil
}

// refusePrivate returns an error that names the first file at a place that nobody but its user may
// have.
func refusePrivate(name, at string, private func(name string) bool) error {
	return filepath.WalkDir(at, func(file string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(at, file) // it is below it
		if file := path.Join(name, filepath.ToSlash(rel)); private(file) {
			return fmt.Errorf("%s is private to the user of the repository; put what the case needs below evals/",
				file)
		}
		return nil
	})
}

// isOfGit reports whether a path is that of a repository's own files, also where letters have no
// case.
func isOfGit(name string) bool {
	return slices.Contains(strings.Split(strings.ToLower(name), "/"), ".git")
}

// isPrivate reports whether a path is one where programs keep keys and settings of their user.
func isPrivate(name string) bool {
	parts := strings.Split(strings.ToLower(name), "/")
	for _, dir := range []string{".git", ".ssh", ".aws", ".gnupg", ".kube", ".docker"} {
		if slices.Contains(parts, dir) {
			return true
		}
	}
	base := parts[len(parts)-1]
	switch base {
	case ".netrc", ".npmrc", ".pypirc", ".envrc", ".git-credentials", ".credentials.json", "credentials.json",
		"auth.json":
		return true
	case ".env.example", ".env.sample", ".env.template":
		return false
	}
	key := slices.Contains([]string{".pem", ".key", ".p12", ".pfx", ".jks", ".keystore"}, path.Ext(base))
	return key || base == ".env" || strings.HasPrefix(base, ".env.") ||
		strings.HasPrefix(base, "id_") && path.Ext(base) == ""
}

func isTestFile(name string) bool { return name == "evals" || strings.HasPrefix(name, "evals/") }
