// Package skill reads skills: directories with a SKILL.md, whose front matter has the skill's name
// and says when to use it, and whose text the agent loads when it does.
//
// Skills come from repositories and agents, which are hostile: no symlink is followed out of the
// root, nothing but regular files is opened, and what is read is bounded.
package skill

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/fit-eval/fit/internal/document"
)

// FileName is the file that makes a directory a skill.
const FileName = "SKILL.md"

// The bounds of what is read. The format's guide asks for 500 lines.
const (
	// MaxFile is the largest file that ReadFile and Read accept.
	MaxFile = 1 << 20
	// maxEntries bounds the entries of a directory of skills.
	maxEntries = 10_000
)

// Skill is what a SKILL.md says.
type Skill struct {
	Dir  string // the skill's directory, relative to the root, with slashes
	Name string // as the front matter has it; otherwise the name of the directory
	// Description says what the skill does and when to use it; empty if the front matter does not.
	Description string
	Body        string // the text after the front matter
	Text        string // the whole file
	// Hidden says that the front matter keeps the skill from the model: only a person may call it.
	Hidden bool
	// Invalid says, with file and line, why the front matter cannot be read; nil if it can, or if
	// there is none. Agents differ in what they make of such a skill.
	Invalid error
}

// File returns the path of the skill's SKILL.md, relative to the root.
func (s *Skill) File() string { return path.Join(s.Dir, FileName) }

// Read reads the skill in a directory below root.
func Read(root *os.Root, dir string) (Skill, error) {
	text, err := ReadFile(root, path.Join(dir, FileName))
	if err != nil {
		return Skill{}, err
	}
	return Parse(dir, text), nil
}

// Parse reads the text of the SKILL.md in a directory.
func Parse(dir string, text []byte) Skill {
	s := Skill{Dir: dir, Text: string(text), Body: string(text)}
	settings, body, err := document.FrontMatter(path.Join(dir, FileName), text)
	var said struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
		Hidden      bool   `yaml:"disable-model-invocation"`
	}
	if err == nil {
		s.Body = string(body)
		if settings != nil {
			err = settings.Decode(&said)
		}
	}
	if err != nil {
		s.Invalid = err
		said.Name, said.Description = "", plainDescription(s.Text)
	}
	s.Hidden = said.Hidden
	s.Name, s.Description = cmp.Or(said.Name, path.Base(dir)), said.Description
	return s
}

// plainDescription finds the description in front matter that is not YAML, most often because an
// unquoted description has a colon in it. Several agents accept such a line.
func plainDescription(text string) string {
	for line := range strings.Lines(text) {
		if description, ok := strings.CutPrefix(line, "description:"); ok {
			return strings.TrimSpace(description)
		}
	}
	return ""
}

// List reads the skills of a directory: each of its directories that has a SKILL.md, in the order
// of their names. A directory that does not exist has none. The error names every SKILL.md that
// could not be read; the other skills are returned with it.
func List(root *os.Root, dir string) ([]Skill, error) {
	names, err := entries(root, dir)
	if err != nil {
		return nil, err
	}
	var skills []Skill
	var failed []error
	for _, name := range names {
		s, err := Read(root, path.Join(dir, name))
		switch {
		case err == nil:
			skills = append(skills, s)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
			failed = append(failed, err)
		}
	}
	return skills, errors.Join(failed...)
}

// entries returns the sorted names in a directory.
func entries(root *os.Root, dir string) ([]string, error) {
	file, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_DIRECTORY, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	names, err := file.Readdirnames(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(names) > maxEntries {
		return nil, fmt.Errorf("%s has more than %d entries; a directory of skills has one for each skill",
			dir,
			maxEntries)
	}
	slices.Sort(names)
	return names, nil
}

// ReadFile reads a regular file of at most MaxFile bytes below root. Opening a FIFO does not wait
// for its writer.
func ReadFile(root *os.Root, name string) ([]byte, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	text, err := io.ReadAll(io.LimitReader(file, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(text) > MaxFile {
		return nil, fmt.Errorf("%s is larger than %d MiB", name, MaxFile>>20)
	}
	return text, nil
}
