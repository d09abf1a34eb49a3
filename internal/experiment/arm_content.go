package experiment

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/skill"
	"github.com/fit-eval/fit/ledger"
)

// Brought is one thing that an arm brings to its agent, or that the family brings to all agents.
type Brought struct {
	Kind   string `json:"kind"` // one of the kinds of pieces in package ledger
	Name   string `json:"name"`
	Digest string `json:"digest,omitempty"`
	From   string `json:"from,omitempty"` // ledger.FromArm or ledger.FromFamily
	// Path is where it is in the working directory: a file, or a directory with all that is in it.
	// It is empty for what is not there, such as a settings file.
	Path string `json:"path,omitempty"`
}

// Bring is something to bring, with where it comes from.
type Bring struct {
	Brought
	Source string // a file or directory of this machine
	// Alone are the places of which none may exist in the files of a task.
	Alone []string `json:",omitempty"`
	// Replaces are the files that make place for it.
	Replaces []string `json:",omitempty"`
}

// Contents reads what the arm brings: everything that its settings name by path, with a digest of
// the content. The places are left to the caller, who knows the agent.
func (a *Arm) Contents() ([]Bring, error) {
	var all []Bring
	for _, read := range []func() ([]Bring, error){
		a.filesContent, a.skillsContent, a.instructionsContent, a.serversContent, a.settingsContent,
	} {
		found, err := read()
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	for i := range all {
		all[i].From = ledger.FromArm
	}
	return all, nil
}

// SkillPaths returns the directories of a skills setting, which are joined by +. A directory whose
// name has a + in it is taken as it is.
func SkillPaths(text string) []string {
	if _, err := os.Stat(text); err == nil || text == "" {
		return nonEmpty(text)
	}
	return nonEmpty(strings.Split(text, "+")...)
}

func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

func (a *Arm) skillsContent() ([]Bring, error) {
	var all []Bring
	named := map[string]string{}
	for _, dir := range SkillPaths(a.Skills) {
		found, err := ReadSkills(dir)
		if err != nil {
			return nil, fmt.Errorf("skills %s: %w", dir, err)
		}
		for _, b := range found {
			if other := named[b.Kind+b.Name]; other != "" {
				return nil, fmt.Errorf("there are two of the name %s: %s and %s; leave one out", b.Name, other,
					b.Source)
			}
			named[b.Kind+b.Name] = b.Source
			all = append(all, b)
		}
	}
	return all, nil
}

// ErrNoSkill says that a directory holds no skill, and what one looks like.
var ErrNoSkill = errors.New("there is no SKILL.md; name the directory of a skill, a directory of such directories, " +
	"or one that has .claude/skills or .agents/skills")

// ReadSkills finds the skills of a directory: it is one itself, it has several, or it has
// .claude/skills or .agents/skills. What else is in its .claude, such as profiles, comes along.
func ReadSkills(dir string) ([]Bring, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if _, err := root.Lstat(skill.FileName); err == nil {
		one, err := readSkill(root, real, ".")
		return []Bring{one}, err
	}
	r := skillReader{root: root, dir: real}
	if err := r.project(); err != nil {
		return nil, err
	}
	if !r.isProject {
		if err := r.skills("."); err != nil {
			return nil, err
		}
	}
	if !slices.ContainsFunc(r.found, func(b Bring) bool {
		return b.Kind == ledger.PieceSkill || b.Kind == ledger.PieceAgent
	}) {
		return nil, ErrNoSkill
	}
	return r.found, nil
}

// skillReader collects the skills of one directory.
type skillReader struct {
	root      *os.Root
	dir       string
	isProject bool
	found     []Bring
}

// project reads .claude and .agents/skills, if they are there.
func (r *skillReader) project() error {
	for _, place := range []string{".claude", ".agents/skills"} {
		if info, err := r.root.Stat(place); err != nil || !info.IsDir() {
			continue
		}
		r.isProject = true
		if place == ".agents/skills" {
			if err := r.skills(place); err != nil {
				return err
			}
			continue
		}
		if err := r.configuration(); err != nil {
			return err
		}
	}
	return nil
}

// configuration reads a .claude: its skills, its agents and commands one by one, and the rest.
func (r *skillReader) configuration() error {
	entries, err := readDir(r.root, ".claude")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := path.Join(".claude", entry)
		switch entry {
		case "skills":
			err = r.skills(name)
		case "agents":
			err = r.each(name, ledger.PieceAgent)
		case "commands":
			err = r.each(name, ledger.PieceCommand)
		default:
			err = r.add(name, ledger.PieceFile, entry)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// skills reads a directory of skills. What is no skill there is brought along, because skills may
// share files, if the directory is meant for skills only.
func (r *skillReader) skills(dir string) error {
	entries, err := readDir(r.root, dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := path.Join(dir, entry)
		if !exists(filepath.Join(r.dir, filepath.FromSlash(name), skill.FileName)) {
			if dir == "." {
				continue
			}
			if err := r.add(name, ledger.PieceFile, entry); err != nil {
				return err
			}
			continue
		}
		one, err := readSkill(r.root, r.dir, name)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(r.found, func(b Bring) bool { return b.Source == one.Source }) {
			r.found = append(r.found, one)
		}
	}
	return nil
}

// each adds the entries of a directory one by one.
func (r *skillReader) each(dir, kind string) error {
	entries, err := readDir(r.root, dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := r.add(path.Join(dir, entry), kind, strings.TrimSuffix(entry, ".md")); err != nil {
			return err
		}
	}
	return nil
}

// add adds a file or directory that is no skill. Path says where it belongs.
func (r *skillReader) add(name, kind, called string) error {
	source, err := inside(r.dir, name)
	if err != nil {
		return err
	}
	digest, err := contentDigest(source)
	if err != nil {
		return err
	}
	r.found = append(r.found, Bring{
		Brought: Brought{
			Kind:   kind,
			Name:   called,
			Digest: digest,
			Path:   name,
		},
		Source: source,
	})
	return nil
}

// skillName is the form of a skill's name.
var skillName = lazyregexp.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// readSkill reads one skill. A skill that was named itself is called what its front matter says,
// because agents expect it in a directory of that name; one of several is called as its directory.
func readSkill(root *os.Root, dir, name string) (Bring, error) {
	source, err := inside(dir, name)
	if err != nil {
		return Bring{}, err
	}
	read, err := skill.Read(root, name)
	if err != nil {
		return Bring{}, err
	}
	file := filepath.Join(source, skill.FileName)
	if strings.TrimSpace(read.Text) == "" {
		return Bring{}, fmt.Errorf("%s is empty; a skill begins with its name and description between two lines ---",
			file)
	}
	called := path.Base(name)
	if name == "." {
		called = filepath.Base(dir)
		if len(read.Name) <= 64 && skillName.MatchString(read.Name) {
			called = read.Name
		}
	}
	digest, err := contentDigest(source)
	return Bring{Brought: Brought{Kind: ledger.PieceSkill, Name: called, Digest: digest}, Source: source}, err
}

// inside resolves the symlinks of a path below a directory, which must not lead out of it.
func inside(dir, name string) (string, error) {
	real, err := filepath.EvalSymlinks(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return "", err
	}
	if real != dir && !strings.HasPrefix(real, strings.TrimSuffix(dir, "/")+"/") {
		return "", fmt.Errorf("%s is a symlink that leads out of %s; name the directory that it leads to", name, dir)
	}
	return real, nil
}

func readDir(root *os.Root, dir string) ([]string, error) {
	entries, err := fs.ReadDir(root.FS(), dir)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, err
}

func (a *Arm) instructionsContent() ([]Bring, error) {
	return oneFile(a.Instructions, "instructions", ledger.PieceInstructions)
}

func (a *Arm) settingsContent() ([]Bring, error) {
	return oneFile(a.Settings, "settings", ledger.PieceSettings)
}

// oneFile reads a file that must say something.
func oneFile(file, key, kind string) ([]Bring, error) {
	if file == "" {
		return nil, nil
	}
	content, err := readRegular(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if len(bytes.TrimSpace(content)) == 0 {
		return nil, fmt.Errorf("%s: %s is empty", key, file)
	}
	return []Bring{{
		Brought: Brought{Kind: kind, Name: filepath.Base(file), Digest: digestOf(content)},
		Source:  file,
	}}, nil
}

// maxBroughtFile bounds the single files that an arm names.
const maxBroughtFile = 4 << 20

func readRegular(file string) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", file)
	case info.Size() > maxBroughtFile:
		return nil, fmt.Errorf("%s is larger than %d MiB", file, maxBroughtFile>>20)
	}
	return os.ReadFile(file)
}

func (a *Arm) filesContent() ([]Bring, error) {
	if a.Files == "" {
		return nil, nil
	}
	real, err := filepath.EvalSymlinks(a.Files)
	if err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	entries, err := os.ReadDir(real)
	if err == nil && len(entries) == 0 {
		err = fmt.Errorf("%s is empty", a.Files)
	}
	if err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	digest, err := contentDigest(real)
	if err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	return []Bring{{
		Brought: Brought{Kind: ledger.PieceFile, Name: filepath.Base(a.Files), Digest: digest},
		Source:  real,
	}}, nil
}

// serversContent reads the tool servers of an arm, one by one.
func (a *Arm) serversContent() ([]Bring, error) {
	if a.MCP == "" {
		return nil, nil
	}
	servers, err := ReadServers(a.MCP)
	if err != nil {
		return nil, fmt.Errorf("mcp: %w", err)
	}
	var all []Bring
	for _, s := range servers {
		all = append(all, Bring{
			Brought: Brought{Kind: ledger.PieceServer, Name: s.Name, Digest: s.digest},
			Source:  a.MCP,
		})
	}
	return all, nil
}

// CurrentDigest hashes the content as it is now.
func (b *Bring) CurrentDigest() (string, error) {
	if b.Kind != ledger.PieceServer {
		return contentDigest(b.Source)
	}
	servers, err := ReadServers(b.Source)
	for _, s := range servers {
		if s.Name == b.Name {
			return s.digest, err
		}
	}
	return "", err
}

// contentDigest hashes a file or a directory without its repository.
func contentDigest(name string) (string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		return treeDigest(name, ".git")
	}
	content, err := os.ReadFile(name)
	return digestOf(content), err
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Seal fills in the hash of an arm: over its settings and over the content of all that it brings.
// Paths, the model's address, the worker that runs the arm and the arm's name make no difference to
// the agent, so they are not part of the hash. The model is part of it.
func (a *Arm) Seal(brings []Bring) error {
	same := *a
	same.Name, same.Hash, same.ModelURL, same.Needs = "", "", "", nil
	same.Skills, same.Instructions, same.Files, same.MCP, same.Settings = "", "", "", "", ""
	content := struct {
		Arm
		Brings []string `json:"brings,omitempty"`
	}{Arm: same}
	content.Context = cmp.Or(a.Context, contextProject)
	for _, b := range brings {
		name := b.Name
		if b.Kind == ledger.PieceInstructions || b.Kind == ledger.PieceSettings || b.Kind == ledger.PieceFile {
			name = "" // the agent sees its place only
		}
		content.Brings = append(content.Brings, strings.Join([]string{b.Kind, name, b.Path, b.Digest}, " "))
	}
	slices.Sort(content.Brings)
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	a.Hash = digestOf(text)
	return nil
}
