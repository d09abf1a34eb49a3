package experiment

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/fit-eval/fit/internal/document"
)

// armsFile is arms.yaml.
type armsFile struct {
	Arms []Arm `yaml:"arms" doc:"the agent configurations that are measured against each other; the first is the baseline" required:"true"`
}

// LoadArms reads arms.yaml. Mistakes are reported with file, line and column; relative skills
// directories are meant relative to the file.
func LoadArms(path string) ([]Arm, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read arms: %w", err)
	}
	doc, err := document.Parse(path, source)
	if err != nil {
		return nil, err
	}
	var file armsFile
	if err := doc.Conforms(file); err != nil {
		return nil, err
	}
	if err := doc.Decode(&file); err != nil {
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
