package treatment

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/skill"
	"github.com/fit-eval/fit/ledger"
)

// The bounds of what is searched for. Repositories may hold anything.
const (
	maxFound       = 2000 // pieces, and files below one directory
	maxImportDepth = 5    // of files that import others; agents stop there too
)

// Find lists what an agent with these places reads below its working directory. Every piece counts
// as the task's; the caller marks those that an arm or a family brings. Files without content are
// left out, except skills. What exists and cannot be read is a piece whose Why says so.
func Find(dir string, places agent.Places) ([]Piece, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f := finder{root: root, places: places, seen: map[string]bool{}}
	f.instructions()
	for _, dir := range places.Skills {
		f.skills(dir)
	}
	for _, dir := range places.Agents {
		f.definitions(ledger.PieceAgent, dir)
	}
	for _, dir := range places.Commands {
		f.definitions(ledger.PieceCommand, dir)
	}
	return f.pieces, nil
}

// finder collects the pieces of one working directory.
type finder struct {
	root   *os.Root
	places agent.Places
	pieces []Piece
	seen   map[string]bool // what is in pieces already, by kind, name and digest
}

// add keeps a piece, unless another place has the same.
func (f *finder) add(piece Piece) {
	key := piece.Kind + "\x00" + piece.Name + "\x00" + piece.Digest
	if f.seen[key] || len(f.pieces) == maxFound {
		return
	}
	f.seen[key] = true
	piece.From = ledger.FromTask
	f.pieces = append(f.pieces, piece)
}

// fail adds a piece that cannot be read, and reports whether there is an error. What does not exist
// is no piece.
func (f *finder) fail(kind, name string, err error) bool {
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		f.add(Piece{Piece: ledger.Piece{
			Kind: kind,
			Name: name,
			Path: name,
			Why:  "it cannot be read: " + err.Error(),
		}})
	}
	return err != nil
}

func (f *finder) instructions() {
	for _, place := range f.places.Instructions {
		before := len(f.pieces)
		for _, name := range f.files(place) {
			f.instruction(name, 0)
		}
		if f.places.OneOf && len(f.pieces) > before {
			return
		}
	}
}

// files lists the files that a place of instructions stands for: itself, those that it matches, or
// the Markdown files of a directory.
func (f *finder) files(place string) []string {
	names := []string{place}
	if strings.ContainsAny(place, "*?[") {
		names, _ = fs.Glob(f.root.FS(), place) // the table of places is tested
	}
	var files []string
	for _, name := range names {
		if info, err := f.root.Stat(name); err == nil && info.IsDir() {
			files = append(files, f.below(ledger.PieceInstructions, name, ".md", ".txt")...)
			continue
		}
		files = append(files, name)
	}
	return files
}

// instruction adds a file of instructions, and those that it imports.
func (f *finder) instruction(name string, depth int) {
	text, err := skill.ReadFile(f.root, name)
	if f.fail(ledger.PieceInstructions, name, err) || strings.TrimSpace(string(text)) == "" {
		return
	}
	known := len(f.pieces)
	f.add(Piece{
		Piece: ledger.Piece{
			Kind:   ledger.PieceInstructions,
			Name:   name,
			Path:   name,
			Digest: digest(text),
		},
		Text: string(text),
	})
	if !f.places.Imports || depth == maxImportDepth || len(f.pieces) == known {
		return
	}
	for _, imported := range imports(string(text)) {
		if file := path.Join(path.Dir(name), imported); !path.IsAbs(imported) && fs.ValidPath(file) {
			if info, err := f.root.Stat(file); err == nil && info.Mode().IsRegular() {
				f.instruction(file, depth+1)
			}
		}
	}
}

// imports lists the files that a text takes in: words that begin with @, outside of code.
func imports(text string) []string {
	var found []string
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if fenced || !strings.Contains(line, "@") {
			continue
		}
		for i, part := range strings.Split(line, "`") {
			if i%2 == 1 {
				continue
			}
			for _, word := range strings.Fields(part) {
				if name, ok := strings.CutPrefix(word, "@"); ok && name != "" {
					found = append(found, name)
				}
			}
		}
	}
	return found
}

func (f *finder) skills(dir string) {
	found, err := skill.List(f.root, dir)
	f.fail(ledger.PieceSkill, dir, err)
	for i := range found {
		s := &found[i]
		sum, err := skill.Digest(f.root, s.Dir)
		if err != nil {
			sum = digest([]byte(s.Text)) // of a tree that cannot be read, at least what is opened first
		}
		f.add(Piece{
			Piece: ledger.Piece{
				Kind:   ledger.PieceSkill,
				Name:   s.Name,
				Path:   s.File(),
				Digest: sum,
			},
			Text:   s.Description,
			Body:   s.Body,
			Hidden: s.Hidden,
		})
	}
}

// definitions adds the sub-agents or commands of a directory.
func (f *finder) definitions(kind, dir string) {
	for _, file := range f.below(kind, dir, ".md", ".toml") {
		text, err := skill.ReadFile(f.root, file)
		if f.fail(kind, file, err) {
			continue
		}
		name := strings.TrimSuffix(strings.TrimSuffix(file, path.Ext(file)), ".agent")
		name = strings.ReplaceAll(strings.TrimPrefix(name, dir+"/"), "/", ":")
		said := definition(file, text)
		if kind == ledger.PieceAgent {
			name = cmp.Or(said.Name, path.Base(strings.ReplaceAll(name, ":", "/")))
		}
		f.add(Piece{
			Piece: ledger.Piece{
				Kind:   kind,
				Name:   name,
				Path:   file,
				Digest: digest(text),
			},
			Text: said.Description,
			Body: said.body,
		})
	}
}

// announced is what announces a sub-agent or a command.
type announced struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	body        string
}

// definition reads what a file says about itself. A command without a description is announced by
// its first line.
func definition(file string, text []byte) announced {
	said := announced{body: string(text)}
	if path.Ext(file) == ".toml" {
		for line := range strings.Lines(said.body) {
			key, value, _ := strings.Cut(line, "=")
			value = strings.Trim(strings.TrimSpace(value), `"'`)
			switch strings.TrimSpace(key) {
			case "name":
				said.Name = cmp.Or(said.Name, value)
			case "description":
				said.Description = cmp.Or(said.Description, value)
			}
		}
		return said
	}
	settings, body, err := document.FrontMatter(file, text)
	if err == nil {
		said.body = string(body)
		if settings != nil {
			_ = settings.Decode(&said) // what is not YAML announces itself by its first line
		}
	}
	if said.Description == "" {
		first, _, _ := strings.Cut(strings.TrimSpace(said.body), "\n")
		said.Description = strings.TrimSpace(strings.TrimLeft(first, "#"))
	}
	return said
}

// below lists the files below a directory whose names end in one of some ways, sorted.
func (f *finder) below(kind, dir string, endings ...string) []string {
	var files []string
	err := fs.WalkDir(f.root.FS(), dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return nil
		case len(files) == maxFound:
			return fmt.Errorf("%s holds more than %d files", dir, maxFound)
		case slices.Contains(endings, path.Ext(name)):
			files = append(files, name)
		}
		return nil
	})
	f.fail(kind, dir, err)
	return files
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
