package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// The bounds of a search for programs in a tree that may be hostile.
const (
	maxProgramFile    = 1 << 20 // bytes of a file whose keys are looked for
	maxProgramEntries = 10_000  // directory entries and files that are looked at for one agent
	maxProgramDepth   = 16      // of **
)

// ProgramsIn lists the files of a working directory that would make the agent run programs of the
// project, sorted, with slashes. What cannot be looked at counts, because the agent may see more
// than we do: a link that leads out of the directory, a file that is too large or is none, and a
// directory with too many entries. The error is that of a pattern.
func (p Places) ProgramsIn(root *os.Root) ([]string, error) {
	search := programSearch{root: root, left: maxProgramEntries}
	for _, program := range p.Programs {
		if _, err := path.Match(program.Glob, ""); err != nil {
			return nil, fmt.Errorf("find programs of the project: pattern %q: %w", program.Glob, err)
		}
		search.keys = keyPattern(program.Keys)
		search.below(".", strings.Split(program.Glob, "/"), 0)
	}
	slices.Sort(search.found)
	return slices.Compact(search.found), nil
}

// programSearch looks for the files of one agent.
type programSearch struct {
	root  *os.Root
	keys  *regexp.Regexp // nil: every file counts
	left  int            // how many more entries may be looked at
	found []string
}

func (s *programSearch) add(name string) { s.found = append(s.found, name) }

// below follows the segments of a pattern from a directory.
func (s *programSearch) below(dir string, segments []string, depth int) {
	switch {
	case s.left <= 0:
		s.add(dir)
	case len(segments) == 0:
		s.file(dir)
	case segments[0] == "**":
		s.below(dir, segments[1:], depth)
		if depth == maxProgramDepth {
			s.add(dir)
			return
		}
		for _, name := range s.entries(dir) {
			if s.isDirectory(path.Join(dir, name)) {
				s.below(path.Join(dir, name), segments, depth+1)
			}
		}
	case strings.ContainsAny(segments[0], `*?[\`):
		for _, name := range s.entries(dir) {
			if matched, _ := path.Match(segments[0], name); matched { // the pattern has been checked
				s.below(path.Join(dir, name), segments[1:], depth)
			}
		}
	default:
		s.left--
		name := path.Join(dir, segments[0])
		if _, err := s.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return
		}
		if len(segments) > 1 && !s.isDirectory(name) {
			return
		}
		s.below(name, segments[1:], depth)
	}
}

// entries are the names in a directory.
func (s *programSearch) entries(dir string) []string {
	file, err := s.root.Open(dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.add(dir)
		}
		return nil
	}
	defer file.Close()
	names, err := file.Readdirnames(s.left + 1)
	if len(names) > s.left || (err != nil && !errors.Is(err, io.EOF)) {
		s.add(dir)
		return nil
	}
	s.left -= len(names)
	return names
}

// isDirectory reports whether a name is a directory of the root. A link that cannot be followed
// counts as a program.
func (s *programSearch) isDirectory(name string) bool {
	info, err := s.root.Stat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.add(name)
	}
	return err == nil && info.IsDir()
}

// file decides about a name that the whole pattern matches.
func (s *programSearch) file(name string) {
	info, err := s.root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist): // a link to nothing
	case err != nil, s.keys == nil, !info.IsDir() && !info.Mode().IsRegular(), info.Size() > maxProgramFile:
		s.add(name)
	case !info.IsDir() && s.hasKey(name):
		s.add(name)
	}
}

func (s *programSearch) hasKey(name string) bool {
	file, err := s.root.Open(name)
	if err != nil {
		return true
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxProgramFile))
	return err != nil || s.keys.Match(unescaped(text))
}

// keyPattern matches a file that has one of some keys: in quotes, or bare as in TOML and YAML; nil
// without keys.
func keyPattern(keys []string) *regexp.Regexp {
	if len(keys) == 0 {
		return nil
	}
	quoted := make([]string, len(keys))
	for i, key := range keys {
		quoted[i] = regexp.QuoteMeta(key)
	}
	any := "(?:" + strings.Join(quoted, "|") + ")"
	return regexp.MustCompile(`(?m)["']` + any + `["']|(?:^|[\[.{,\r])[ \t]*` + any + `[ \t]*[\].:=]`)
}

// escapes are those that JSON, YAML and TOML know for any character.
var escapes = lazyregexp.New(`\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2})`)

// unescaped writes the characters that are given by their numbers: "\u0068ooks" is a key too.
func unescaped(text []byte) []byte {
	return escapes.Get().ReplaceAllFunc(text, func(escape []byte) []byte {
		number, err := strconv.ParseInt(string(escape[2:]), 16, 32)
		if err != nil {
			return escape
		}
		return []byte(string(rune(number)))
	})
}
