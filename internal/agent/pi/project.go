package pi

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
)

// places are what the program reads of a project by itself. SYSTEM.md and APPEND_SYSTEM.md in .pi
// are not among them: the system prompt is the caller's.
var places = agent.Places{
	Instructions: []string{"AGENTS.md", "CLAUDE.md"},
	OneOf:        true,
	Skills:       []string{".agents/skills", ".pi/skills"},
	Commands:     []string{".pi/prompts"},
	Programs:     []agent.ProjectProgram{{Glob: extensionsDir + "/*"}},
}

const (
	extensionsDir = ".pi/extensions"
	settingsFile  = ".pi/settings.json"

	maxInstructions = 1 << 20 // bytes; more than any model takes
	maxExtensions   = 100
)

// project is what the session reads of its project. The program looks above the working directory
// and in the home too, so its own search is off, and what it would find in the working directory is
// named one by one.
type project struct {
	instructions string   // as the program puts them into the system prompt; empty without any
	arguments    []string // name the rest
}

// readProject looks for what the session reads.
func readProject(cfg agent.Config) (project, error) {
	if !cfg.ReadsProject() {
		return project{}, nil
	}
	root, err := os.OpenRoot(cfg.Dir)
	if err != nil {
		return project{}, fmt.Errorf("open working directory: %w", err)
	}
	defer root.Close()
	var p project
	if name, text := places.FirstInstructions(root, maxInstructions); name != "" {
		p.instructions = "# Project Context\n\nProject-specific instructions and guidelines:\n\n" +
			"## " + filepath.Join(cfg.Dir, name) + "\n\n" + text + "\n\n"
	}
	for _, list := range []struct {
		flag string
		dirs []string
	}{{"--skill", places.Skills}, {"--prompt-template", places.Commands}} {
		for _, dir := range list.dirs {
			if info, err := root.Stat(dir); err == nil && info.IsDir() {
				p.arguments = append(p.arguments, list.flag, filepath.Join(cfg.Dir, dir))
			}
		}
	}
	if cfg.RunsProjectPrograms() {
		for _, name := range extensionsIn(root) {
			p.arguments = append(p.arguments, "--extension", filepath.Join(cfg.Dir, name))
		}
	}
	return p, nil
}

// extensionsIn lists what the program would load: files of the two languages, and directories with
// one of the usual names in them or with a description of their own.
func extensionsIn(root *os.Root) []string {
	dir, err := root.Open(extensionsDir)
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxExtensions)
	if err != nil {
		return nil
	}
	slices.Sort(names)
	var found []string
	for _, name := range names {
		file := path.Join(extensionsDir, name)
		candidates := []string{file}
		if info, err := root.Stat(file); err != nil {
			continue
		} else if info.IsDir() {
			candidates = nil
			for _, usual := range []string{"package.json", "index.ts", "index.js"} {
				candidates = append(candidates, path.Join(file, usual))
			}
		}
		for _, candidate := range candidates {
			info, err := root.Stat(candidate)
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			switch path.Ext(candidate) {
			case ".json":
				found = append(found, file)
			case ".ts", ".js":
				found = append(found, candidate)
			}
			break
		}
	}
	return found
}

// hideSettings keeps the program from the directory .pi of the project, whose settings would win
// over ours: they choose models and shells, and make it run programs. The program takes the name of
// that directory from the description of its own package, so it gets a copy of it with another
// name, beside links to the rest of the package; the name leads to an empty directory of the
// session's. It returns the directory of that package.
func hideSettings(cfg agent.Config) (string, error) {
	real, description := ownPackage(cfg.Installation.Path)
	if real == "" {
		if _, err := os.Lstat(filepath.Join(cfg.Dir, settingsFile)); err == nil {
			return "", fmt.Errorf("agent %s would follow %s of the project, and its package, with which fit prevents "+
				"that, was not found at %s; remove the file, or install the agent with %s", agentID, settingsFile,
				cfg.Installation.Path, installHint)
		}
		return "", nil
	}
	// The program appends the name to the working directory, however deep that is.
	own := filepath.Join(cfg.Home, "project")
	description["piConfig"] = map[string]any{"configDir": strings.Repeat("../", 256) + strings.TrimPrefix(own, "/")}
	dir := filepath.Join(cfg.Home, "package")
	if err := agent.MakeHome(own, dir); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(real)
	if err != nil {
		return "", fmt.Errorf("prepare agent home: %w", err)
	}
	for _, entry := range entries {
		link := filepath.Join(dir, entry.Name())
		if _, err := os.Lstat(link); err == nil || entry.Name() == "package.json" {
			continue // a resumed session has it already
		}
		if err := os.Symlink(filepath.Join(real, entry.Name()), link); err != nil {
			return "", fmt.Errorf("prepare agent home: %w", err)
		}
	}
	return dir, writeJSON(cfg, filepath.Join(dir, "package.json"), description)
}

// ownPackage finds the package that a program belongs to, and its description; empty if there is
// none.
func ownPackage(program string) (dir string, description map[string]any) {
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return "", nil
	}
	for dir = filepath.Dir(real); ; dir = filepath.Dir(dir) {
		data, err := os.ReadFile(filepath.Join(dir, "package.json"))
		if err == nil && json.Unmarshal(data, &description) == nil && description["piConfig"] != nil {
			return dir, description
		}
		if dir == filepath.Dir(dir) {
			return "", nil
		}
	}
}
