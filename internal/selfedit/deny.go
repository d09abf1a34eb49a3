package selfedit

import (
	"path/filepath"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/internal/lazyregexp"
)

var denyRule = lazyregexp.New(`(?s)^(?:Edit|Write|MultiEdit|NotebookEdit)(?:\((.*)\))?$`)

// checkDeny refuses a target, given as an absolute path, that a deny rule of the file covers, or
// may cover.
func (s settings) checkDeny(target string, homes []string) error {
	for _, text := range s.deny {
		found := denyRule.FindStringSubmatch(strings.TrimSpace(text))
		if found == nil && strings.TrimSpace(text) != "*" {
			continue
		}
		pattern := ""
		if found != nil {
			pattern = found[1]
		}
		denied, err := denies(pattern, s.root, target, homes)
		if err != nil {
			return notAllowed("the deny rule %s in %s cannot be understood and so denies everything: %v",
				display.Name(text), display.Name(s.path), err)
		}
		if denied {
			return notAllowed("the deny rule %s in %s covers %s", display.Name(text), display.Name(s.path),
				display.Name(target))
		}
	}
	return nil
}

// denies reports whether a deny pattern, read generously, covers a path; the package documentation
// says how.
func denies(pattern, root, target string, homes []string) (bool, error) {
	bases := []string{root}
	anchored := true
	switch {
	case strings.HasPrefix(pattern, "//"):
		bases, pattern = []string{"/"}, strings.TrimLeft(pattern, "/")
	case strings.HasPrefix(pattern, "~/"):
		bases, pattern = homes, pattern[2:]
	case strings.HasPrefix(pattern, "/"), strings.HasPrefix(pattern, "./"):
		_, pattern, _ = strings.Cut(pattern, "/")
	default:
		anchored = false
	}
	pattern = strings.TrimRight(pattern, "/")
	for _, base := range bases {
		rel, err := filepath.Rel(base, target)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		if pattern == "" {
			return true, nil
		}
		if denied, err := coversName(pattern, filepath.ToSlash(rel), anchored); denied || err != nil {
			return denied, err
		}
	}
	return false, nil
}

// coversName matches the path and every directory on the way to it; a pattern without slash may
// match any one name among them.
func coversName(pattern, rel string, anchored bool) (bool, error) {
	compiled, err := glob.Compile(foldName(pattern))
	if err != nil {
		return false, err
	}
	anyDepth := !anchored && !strings.Contains(pattern, "/")
	segments := strings.Split(foldName(rel), "/")
	for i, segment := range segments {
		if compiled.Match(strings.Join(segments[:i+1], "/")) || anyDepth && compiled.Match(segment) {
			return true, nil
		}
	}
	return false, nil
}

// readDenials returns the settings files that can deny a write to the target: those between its
// directory and the top of its repository.
func readDenials(targetDir, top string) ([]settings, error) {
	var files []settings
	for dir := targetDir; ; dir = filepath.Dir(dir) {
		for _, name := range []string{settingsName, ".claude/settings.local.json"} {
			path := filepath.Join(dir, name)
			text, err := readThroughLinks(path, maxSettingsFile)
			if isAbsent(err) {
				continue
			}
			if err != nil {
				return nil, notAllowed("failed to read %s: %v", display.Name(path), err)
			}
			parsed, err := parseSettings(path, dir, text)
			if err != nil {
				return nil, err
			}
			files = append(files, parsed)
		}
		if dir == top || dir == filepath.Dir(dir) {
			return files, nil
		}
	}
}
