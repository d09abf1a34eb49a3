package workspace

import (
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/fit-eval/fit/internal/task"
)

// writeSample puts the files of a sample into the tree of a base.
func writeSample(sample *task.Sample, tree string) error {
	if sample == nil || len(sample.Files) == 0 {
		return nil
	}
	root, err := os.OpenRoot(tree)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, file := range sample.Files {
		content := []byte(file.Content)
		if file.From != "" {
			if content, err = os.ReadFile(file.From); err != nil {
				return fmt.Errorf("file of the sample: %w", err)
			}
		}
		if err := root.MkdirAll(filepath.FromSlash(path.Dir(file.Path)), 0o755); err != nil {
			return fmt.Errorf("file of the sample: %w", err)
		}
		if err := root.WriteFile(filepath.FromSlash(file.Path), content, 0o644); err != nil {
			return fmt.Errorf("file of the sample: %w", err)
		}
	}
	return nil
}
