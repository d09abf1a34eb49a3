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

// LoadArms reads arms.yaml. Mistakes are reported with file, line and column; paths are relative to
// the file.
func LoadArms(path string) ([]Arm, error) {
	var file armsFile
	return loadArms(path, &file, &file.Arms)
}

// loadArms fills a document, of which into is all and list the arms.
func loadArms(path string, into any, list *[]Arm) ([]Arm, error) {
	doc, err := document.Load("arms", path, into)
	if err != nil {
		return nil, err
	}
	beside := func(name string) string {
		if name == "" || filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(filepath.Dir(path), name)
	}
	seen := map[string]bool{}
	arms := *list
	for i := range arms {
		arm := &arms[i]
		if seen[arm.Name] {
			return nil, doc.ErrorAt([]string{"arms", strconv.Itoa(i), "name"},
				"two arms are called %q; choose another name for one", arm.Name)
		}
		seen[arm.Name] = true
		arm.Skills = ResolveSkills(arm.Skills, beside)
		for _, path := range []*string{&arm.Instructions, &arm.Files, &arm.MCP, &arm.Settings} {
			*path = beside(*path)
		}
	}
	if err := CheckArms(arms); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return arms, nil
}
