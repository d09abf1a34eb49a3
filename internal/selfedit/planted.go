package selfedit

import (
	"context"
	"path/filepath"

	"github.com/fit-eval/fit/internal/display"
)

// checkNotPlanted refuses a repository that was made inside the tracked files of another one. Git
// never makes such a repository by itself, and it would let anybody leave a protected branch by
// running git init in a subdirectory.
func checkNotPlanted(ctx context.Context, inner repository) error {
	parent := filepath.Dir(inner.top)
	if parent == inner.top {
		return nil
	}
	outer, err := findRepository(ctx, parent)
	if err != nil {
		// No outer repository, or one so broken that its branch could have been changed as well.
		return nil
	}
	rel, err := filepath.Rel(outer.top, inner.top)
	if err != nil {
		return outOfScope("%v", err)
	}
	tracked, err := outer.tracksBelow(ctx, filepath.ToSlash(rel))
	if err != nil {
		return outOfScope("failed to read the index of the outer repository %s: %v", display.Name(outer.top), err)
	}
	if tracked {
		return outOfScope("the repository %s lies in a directory whose files belong to the repository %s",
			display.Name(inner.top), display.Name(outer.top))
	}
	return nil
}
