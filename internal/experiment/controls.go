package experiment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fit-eval/fit/internal/tree"
)

// The names of controls. Agents, graders and judges do not see the names of arms.
const (
	// ControlShadow is the baseline once more, which must not differ from it.
	ControlShadow = "control-shadow"
	// ControlKnown has an effect that is known, which must be found.
	ControlKnown = "control-known"
)

// controlFile is the file in which a family declares an arm with a known effect.
const controlFile = "control-arm.yaml"

// declaredControl is control-arm.yaml: a file of arms with one arm, whatever its name.
type declaredControl struct {
	Effect string `yaml:"effect" doc:"how the arm differs from any baseline" enum:"better,worse" required:"true"`
	Arms   []Arm  `yaml:"arms" doc:"the arm with a known effect" required:"true"`
}

// KnownControl returns the arm with a known effect that a family declares, and whether it is better
// or worse than the baseline; nil where it declares none.
func KnownControl(family string) (arm *Arm, effect string, err error) {
	root, err := openReal(family)
	if err != nil {
		return nil, "", err
	}
	defer root.Close()
	name, err := tree.Beneath(root, controlFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	} else if err != nil {
		return nil, "", err
	}
	path := filepath.Join(root.Name(), name)
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return nil, "", fmt.Errorf("%s is not a regular file", path)
	}
	var declared declaredControl
	arms, err := loadArms(path, &declared, &declared.Arms)
	switch {
	case err != nil:
		return nil, "", err
	case len(arms) != 1:
		return nil, "", fmt.Errorf("%s declares %d arms, and must declare one with a known effect", path, len(arms))
	}
	arms[0].Name = ControlKnown
	if err := arms[0].ofFamily(root); err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	return &arms[0], declared.Effect, nil
}

// openReal opens a directory under the name that it has without links.
func openReal(dir string) (*os.Root, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return nil, err
	}
	return os.OpenRoot(real)
}

// ofFamily refuses what the author of a family does not decide for its user: which files of the
// machine go to a model, where the keys go, and what programs run.
func (a *Arm) ofFamily(root *os.Root) error {
	for _, setting := range []struct {
		key string
		set bool
	}{
		{"modelUrl", a.ModelURL != ""},
		{"auth", a.Auth != ""},
		{"env", len(a.Env) > 0},
		{"mcp", a.MCP != ""},
		{"settings", a.Settings != ""},
	} {
		if setting.set {
			return fmt.Errorf("the control of a family has no %s: set it for all arms on the command line", setting.key)
		}
	}
	for _, agent := range []string{a.Agent, a.Lead} {
		if strings.Contains(agent, ":") {
			return fmt.Errorf("the control of a family names a registered agent, not %s", agent)
		}
	}
	skills := SkillPaths(a.Skills)
	paths := []*string{&a.Instructions, &a.Files}
	for i := range skills {
		paths = append(paths, &skills[i])
	}
	for _, path := range paths {
		if err := within(root, path); err != nil {
			return err
		}
	}
	a.Skills = strings.Join(skills, "+")
	return nil
}

// within resolves a path, which must not leave a directory.
func within(root *os.Root, path *string) error {
	if *path == "" {
		return nil
	}
	rel, err := filepath.Rel(root.Name(), *path)
	if err != nil || !filepath.IsLocal(rel) {
		return fmt.Errorf("%s is not in the family: put what it names into the family", *path)
	}
	name, err := tree.Beneath(root, filepath.ToSlash(rel))
	if err != nil {
		return err
	}
	*path = filepath.Join(root.Name(), filepath.FromSlash(name))
	return nil
}

// Shadow returns an arm under the name of the control.
func (a Arm) Shadow() Arm {
	a.Name = ControlShadow
	return a
}
