package skill

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
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
// repository that the skill is part of.
func FindCaseFile(dir, name string) (CaseFile, error) {
	name = path.Clean(filepath.ToSlash(name))
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return CaseFile{}, errLeadsOut
	}
	usable := func(path string) bool {
		info, err := os.Lstat(path)
		return err == nil && (info.Mode().IsRegular() || info.IsDir())
	}
	for _, own := range []string{name, path.Join("evals", name)} {
		if at := filepath.Join(dir, filepath.FromSlash(own)); usable(at) {
			return CaseFile{
				Name:    own,
				From:    at,
				OfSkill: !isTestFile(own),
			}, nil
		}
	}
	for repository := dir; ; repository = filepath.Dir(repository) {
		if _, err := os.Lstat(filepath.Join(repository, ".git")); err == nil {
			at := filepath.Join(repository, filepath.FromSlash(name))
			if !usable(at) {
				return CaseFile{}, errNowhere
			}
			rel, err := filepath.Rel(dir, at)
			return CaseFile{
				Name:    name,
				From:    at,
				OfSkill: err == nil && filepath.IsLocal(rel) && !isTestFile(filepath.ToSlash(rel)),
			}, nil
		}
		if filepath.Dir(repository) == repository {
			return CaseFile{}, errNowhere
		}
	}
}

func isTestFile(name string) bool { return name == "evals" || strings.HasPrefix(name, "evals/") }
