package skill

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/fit-eval/fit/internal/tree"
)

// files looks at every file of the skill.
func (l *linter) files() {
	walk := tree.Walk{MaxFiles: maxFiles, MaxBytes: maxTree}
	err := walk.Each(l.root, func(_ *os.Root, e tree.Entry) error {
		if !e.IsRegular() || e.Size > MaxFile || strings.HasPrefix(e.Path, ".git/") {
			return nil
		}
		text, err := ReadFile(l.root, e.Path)
		if err != nil {
			l.add("unreadable", LevelError, e.Path, 0, "%v", err)
			return nil
		}
		if bytes.HasPrefix(text, []byte("#!")) && e.Mode&0o100 == 0 && !l.interpreted(e.Path) {
			l.add("not-executable", levelWarning, e.Path, 1, "it begins with #! but is not executable; run chmod +x")
		}
		if bytes.IndexByte(text, 0) >= 0 {
			return nil // not a text
		}
		l.lines(e.Path, string(text))
		return nil
	})
	if errors.As(err, new(*tree.LimitError)) {
		err = fmt.Errorf("the skill holds more than %d files or %d MiB", maxFiles, maxTree>>20)
	}
	if err != nil {
		l.add("unreadable", LevelError, ".", 0, "%v", err)
	}
}

// interpreted reports whether SKILL.md has a script run by an interpreter.
func (l *linter) interpreted(script string) bool {
	for _, found := range interpreter.Get().FindAllSubmatch(l.text, -1) {
		if called := path.Clean(string(found[1])); called == script || strings.HasSuffix(called, "/"+script) {
			return true
		}
	}
	return false
}

func (l *linter) lines(file, text string) {
	if l.redactor.String(text) != text {
		at := 0
		for i, line := range strings.Split(text, "\n") {
			if l.redactor.String(line) != line {
				at = i + 1
				break
			}
		}
		l.add("secret", LevelError, file, at, "it looks like a credential; remove it and revoke it")
	}
	for i, line := range strings.Split(text, "\n") {
		for _, found := range absolutePath.Get().FindAllString(line, -1) {
			if !placeholder.Get().MatchString(found) {
				l.add("absolute-path", levelWarning, file, i+1, "%s is a path of one machine", found)
				return // one for each file is enough to see it
			}
		}
	}
}
