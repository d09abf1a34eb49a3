package experiment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The names of controls. Agents, graders and judges do not see the names of arms.
const (
	// ControlShadow is the baseline once more, which must not differ from it.
	ControlShadow = "control-shadow"
	// ControlKnown has an effect that is known, which must be found.
	ControlKnown = "control-known"
)

// controlFile is the file in which a family declares an arm with a known effect: a file of arms
// with one arm, whatever its name.
const controlFile = "control-arm.yaml"

// KnownControl returns the arm with a known effect that a family declares; nil where it declares
// none.
func KnownControl(family string) (*Arm, error) {
	path := filepath.Join(family, controlFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	arms, err := LoadArms(path)
	switch {
	case err != nil:
		return nil, err
	case len(arms) != 1:
		return nil, fmt.Errorf("%s declares %d arms, and must declare one with a known effect", path, len(arms))
	}
	arms[0].Name = ControlKnown
	return &arms[0], nil
}

// Shadow returns an arm under the name of the control.
func (a Arm) Shadow() Arm {
	a.Name = ControlShadow
	return a
}
