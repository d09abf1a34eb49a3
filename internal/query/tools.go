package query

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
)

// ToolCount is how often a tool was used.
type ToolCount struct {
	Tool  string `json:"tool"`
	Count int    `json:"count"`
}

// counter counts names.
type counter struct{ ordered[ToolCount] }

func (c *counter) add(name string, n int) {
	row, _ := c.row(&name)
	row.Tool = name
	row.Count += n
}

// sorted is by count, most first; equal counts stay in the order of first appearance.
func (c *counter) sorted() []ToolCount {
	sorted := append([]ToolCount{}, c.rows...)
	slices.SortStableFunc(sorted, func(a, b ToolCount) int { return cmp.Compare(b.Count, a.Count) })
	return sorted
}

// Tools counts the uses of every tool.
func (t *Trace) Tools(ctx context.Context) ([]ToolCount, *Info, error) {
	var tools counter
	info, err := t.countTools(ctx, &tools, false)
	return tools.sorted(), info, err
}

// countTools makes one pass for the tools and the Info.
func (t *Trace) countTools(ctx context.Context, tools *counter, accounts bool) (*Info, error) {
	return t.walk(ctx, plan{accounts: accounts, visit: func(e *Cursor) error {
		e.Tools(func(name string) { tools.add(name, 1) })
		return nil
	}})
}

// MergeTools adds up the counts of several files.
func MergeTools(lists ...[]ToolCount) []ToolCount {
	var sum counter
	for _, list := range lists {
		for _, tool := range list {
			sum.add(tool.Tool, tool.Count)
		}
	}
	return sum.sorted()
}

// Tool shows the entries that use a tool, and the results that came back, in order.
func (t *Trace) Tool(ctx context.Context, name string, visit func(*Entry) error) error {
	ids := map[string]bool{}
	_, err := t.walk(ctx, plan{
		visit: func(e *Cursor) error {
			switch e.Role {
			case RoleAssistant:
				if !e.uses(name) {
					return nil
				}
				entry := e.Entry()
				for _, b := range entry.Content {
					if b.Type == BlockToolUse && b.Name == name && b.ToolUseID != nil {
						ids[e.inLane(*b.ToolUseID)] = true
					}
				}
				return visit(entry)
			case RoleToolResult:
				if id := e.resultID(); id == "" || !ids[e.inLane(id)] {
					return nil
				}
				return visit(e.Entry())
			}
			return nil
		},
	})
	return err
}

// PathCount counts how often a file was read, edited or written.
type PathCount struct {
	Path  string `json:"path"`
	Count int    `json:"count"`
}

// Paths counts the files that were read, edited and written, with the given prefix.
func (t *Trace) Paths(ctx context.Context, prefix string) ([]PathCount, error) {
	var paths counter
	_, err := t.walk(ctx, plan{
		visit: func(e *Cursor) error {
			if !e.usesAny() {
				return nil
			}
			for _, b := range e.Entry().Content {
				for _, path := range b.paths() {
					if strings.HasPrefix(path, prefix) {
						paths.add(path, 1)
					}
				}
			}
			return nil
		},
	})
	return paths.sortedPaths(), err
}

// input returns the text of a member of a call's input, nil if there is none.
func (b *Block) input(name string) *string {
	parser := parsers.Get().(*jsontape.Parser)
	defer parsers.Put(parser)
	v, _ := parser.Parse(b.Input)
	return textMember(v, name)
}

func (b *Block) paths() []string {
	if b.Type != BlockToolUse {
		return nil
	}
	if b.Canonical != "" {
		switch b.Canonical {
		case "read", "edit", "write":
			return b.Paths
		}
		return nil
	}
	switch b.Name {
	case "Read", "Edit", "Write":
		if path := b.input("file_path"); path != nil {
			return []string{*path}
		}
	}
	return nil
}

// sortedPaths is by count, most first, then by name.
func (c *counter) sortedPaths() []PathCount {
	paths := make([]PathCount, 0, len(c.rows))
	for _, path := range c.rows {
		paths = append(paths, PathCount{path.Tool, path.Count})
	}
	slices.SortStableFunc(paths, func(a, b PathCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Path, b.Path))
	})
	return paths
}

// MergePaths adds up the counts of several files.
func MergePaths(lists ...[]PathCount) []PathCount {
	var sum counter
	for _, list := range lists {
		for _, path := range list {
			sum.add(path.Path, path.Count)
		}
	}
	return sum.sortedPaths()
}
