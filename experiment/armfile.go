package experiment

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/fit-eval/fit/internal/document"
)

// armsFile is arms.yaml.
type armsFile struct {
	Arms []Arm `yaml:"arms" doc:"the agent configurations that are measured against each other; the first is the baseline" required:"true"`
}

// LoadArms reads arms.yaml. Mistakes are reported with file, line and column; skills directories
// are relative to the file.
func LoadArms(path string) ([]Arm, error) {
	var file armsFile
	doc, err := document.Load("arms", path, &file)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i := range file.Arms {
		arm := &file.Arms[i]
		if seen[arm.Name] {
			return nil, doc.ErrorAt([]string{"arms", strconv.Itoa(i), "name"}, "two arms are called %q", arm.Name)
		}
		seen[arm.Name] = true
		if arm.Skills != "" && !filepath.IsAbs(arm.Skills) {
			arm.Skills = filepath.Join(filepath.Dir(path), arm.Skills)
		}
	}
	if err := CheckArms(file.Arms); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file.Arms, nil
}
