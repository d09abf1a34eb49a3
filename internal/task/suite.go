package task

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/internal/tree"
)

// loadSuite finds the hidden suite of a task. If the path is missing or not a directory, there is
// no suite.
func (l *loader) loadSuite(t *Task, tests testsFile, where settingsFile) *Suite {
	dir := filepath.Join(t.Dir, "tests")
	if info, err := os.Lstat(dir); l.dir(l.rel(dir)) == "" || err != nil || !info.IsDir() {
		return nil
	}
	files := l.suiteFiles(dir)
	suite := &Suite{Dir: dir}
	language, naming := l.suiteLanguage(files, tests, where, dir)
	if naming == nil {
		return suite
	}
	byName := map[string]string{}
	for _, file := range files {
		name, gate, isCheck := naming(file)
		if !isCheck {
			suite.Support = append(suite.Support, file)
			continue
		}
		if other, taken := byName[name]; taken {
			l.wrong(path.Join(l.rel(dir), file), "the check %q exists already: %s", name, other)
			continue
		}
		if name == "" {
			l.wrong(path.Join(l.rel(dir), file), "the check has no name")
			continue
		}
		byName[name] = file
		suite.Checks = append(suite.Checks, Check{
			Name:   name,
			File:   file,
			Gate:   gate,
			Weight: 1,
		})
	}
	if len(suite.Checks) == 0 {
		l.wrong(l.rel(dir), "no file is a check: %s", namings[language].help)
	}
	suite.Runner = runnerOf(language, tests, suite)
	l.checkRunner(suite, tests, where, dir)
	l.applyTests(suite, tests, where)
	return suite
}

// suiteFiles lists the regular files of a suite, links to such files included.
func (l *loader) suiteFiles(dir string) []string {
	entries, err := walkTree(dir, nil)
	l.fail(err)
	var files []string
	for _, e := range entries {
		where := path.Join(l.rel(dir), e.Path)
		switch {
		case e.IsDir():
		case e.IsRegular():
			files = append(files, e.Path)
		case e.IsLink():
			if err := l.linkError(l.rel(e.source)); err != nil {
				l.wrong(where, "not a regular file: the link %v", err)
				continue
			}
			files = append(files, e.Path)
		default:
			l.wrong(where, "not a regular file")
		}
	}
	return files
}

// linkError returns what is wrong with a link of the family that should lead to a regular file of
// it; nil for a path where nothing is.
func (l *loader) linkError(rel string) error {
	name, err := l.beneath(rel)
	link, out := errors.AsType[*tree.LinkError](err)
	switch {
	case out:
		return fmt.Errorf("leads out of the family, to %s", link.Target)
	case err != nil && exists(filepath.Join(l.real, filepath.FromSlash(rel))):
		return errDangling
	case err != nil:
		return nil
	}
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return errors.New("leads to something else")
	}
	return nil
}

// suiteLanguage decides which files are checks. It returns no naming on a mistake.
func (l *loader) suiteLanguage(files []string, tests testsFile, where settingsFile, dir string) (string,
	func(rel string) (string, bool, bool),
) {
	if tests.Language == languageOther {
		patterns, ok := l.globs(tests.Files, where, []string{"tests", "files"}, l.rel(dir))
		if len(tests.Files) == 0 {
			l.add(where.wrong(l.rel(dir), []string{"tests"}, "language other needs files: globs of the test files"))
			return languageOther, nil
		}
		if !ok {
			return languageOther, nil
		}
		return languageOther, otherNaming(patterns)
	}
	language := tests.Language
	if language == "" {
		found := languagesOf(files)
		if len(found) > 1 {
			l.wrong(l.rel(dir), "tests in several languages (%s): say which one with tests.language in task.yaml",
				strings.Join(found, ", "))
			return "", nil
		}
		if len(found) == 0 {
			l.wrong(l.rel(dir), "no file is a check: name tests x.test.js (node), x_test.go (go) or test_x.py "+
				"(python), or say tests.language: other in task.yaml")
			return "", nil
		}
		language = found[0]
	}
	byBase := namings[language].check
	if byBase == nil {
		return language, nil // the schema has said so
	}
	return language, func(rel string) (string, bool, bool) { return byBase(path.Base(rel)) }
}

func languagesOf(files []string) []string {
	var found []string
	for _, language := range slices.Sorted(maps.Keys(namings)) {
		byBase := namings[language].check
		isCheck := func(file string) bool { _, _, check := byBase(path.Base(file)); return check }
		if byBase != nil && slices.ContainsFunc(files, isCheck) {
			found = append(found, language)
		}
	}
	return found
}

// globs compiles patterns; one without a slash is about names in any directory.
func (l *loader) globs(sources []string, where settingsFile, at []string, otherwise string) ([]glob.Pattern, bool) {
	var patterns []glob.Pattern
	ok := true
	for i, source := range sources {
		pattern, err := glob.Compile(source)
		if err == nil && !strings.Contains(source, "/") {
			pattern, err = glob.Compile("**/" + source)
		}
		if err != nil {
			l.add(where.wrong(otherwise, append(slices.Clone(at), fmt.Sprint(i)), "%v", err))
			ok = false
			continue
		}
		patterns = append(patterns, pattern)
	}
	return patterns, ok
}

// checkRunner makes sure that the suite can be run and its report trusted.
func (l *loader) checkRunner(suite *Suite, tests testsFile, where settingsFile, dir string) {
	r := suite.Runner
	if len(r.Command) == 0 {
		l.add(where.wrong(l.rel(dir), []string{"tests"}, "language other needs a command"))
		return
	}
	if r.Parser == "" {
		l.add(where.wrong(l.rel(dir), []string{"tests"}, "a command of your own needs a parser"))
	}
	has := func(placeholder string) bool {
		return slices.ContainsFunc(r.Command, func(arg string) bool { return strings.Contains(arg, placeholder) })
	}
	namesTests := has("{tests}") && has("{dir}")
	if !has("{file}") && !namesTests {
		l.add(where.wrong(l.rel(dir), []string{"tests", "command"},
			"the command does not say which file to run: use {file}, or {dir} with {tests}"))
	}
	if r.Parser == ParserExitNonce && !has("{nonce}") {
		l.add(where.wrong(l.rel(dir), []string{"tests", "command"},
			"the parser exit-nonce needs {nonce} in the command"))
	}
	if r.Report != "" && !filepath.IsLocal(r.Report) {
		l.add(where.wrong(l.rel(dir), []string{"tests", "report"}, "%s is not inside the working directory", r.Report))
	}
	if tests.Runner != "" && r.Language != LanguagePython {
		l.add(where.wrong(l.rel(dir), []string{"tests", "runner"}, "only Python suites have a choice of runners"))
	}
}

// applyTests gives checks their weights and the names of their tests.
func (l *loader) applyTests(suite *Suite, tests testsFile, where settingsFile) {
	known := map[string]*Check{}
	for i := range suite.Checks {
		check := &suite.Checks[i]
		known[check.Name] = check
		if suite.Runner.Language != LanguageGo {
			continue
		}
		names, err := goTests(filepath.Join(suite.Dir, check.File))
		if err != nil {
			l.wrong(path.Join(l.rel(suite.Dir), check.File), "no Go source: %v", err)
		} else if len(names) == 0 {
			l.wrong(path.Join(l.rel(suite.Dir), check.File), "it has no tests")
		}
		check.Tests = names
	}
	for _, name := range slices.Sorted(maps.Keys(tests.Weights)) {
		weight, at := tests.Weights[name], []string{"tests", "weights", name}
		switch check := known[name]; {
		case check == nil:
			l.add(where.wrong(l.rel(suite.Dir), at, "there is no such check"))
		case check.Gate:
			l.add(where.wrong(l.rel(suite.Dir), at, "a gate has no weight"))
		case !(weight > 0 && weight <= 1e6):
			l.add(where.wrong(l.rel(suite.Dir), at, "a weight is a number above 0"))
		default:
			check.Weight = weight
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tests.Names)) {
		names, at := tests.Names[name], []string{"tests", "names", name}
		if known[name] == nil {
			l.add(where.wrong(l.rel(suite.Dir), at, "there is no such check"))
			continue
		}
		if twice := duplicate(names); twice != "" {
			l.add(where.wrong(l.rel(suite.Dir), at, "%q is named twice", twice))
		}
		known[name].Tests = names
	}
}

func duplicate(names []string) string {
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			return name
		}
		seen[name] = true
	}
	return ""
}
