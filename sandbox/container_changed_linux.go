package sandbox

import (
	"context"
	"slices"
	"strings"
)

// Changed lists the files and directories of the image that programs in the container have changed
// or removed. What they have added is not among them.
func (c *Container) Changed(ctx context.Context) ([]string, error) {
	c.mu.Lock()
	var names []string
	for _, r := range c.rooms {
		names = append(names, r.name)
	}
	c.mu.Unlock()
	var changed []string
	for _, name := range names {
		printed, err := c.cfg.Engine.output(ctx, "diff", name)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(printed) {
			kind, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			if kind == "C" || kind == "D" {
				changed = append(changed, path)
			}
		}
	}
	slices.Sort(changed)
	return slices.Compact(changed), nil
}
