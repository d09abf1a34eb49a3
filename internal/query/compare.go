package query

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// Comparison sets two traces side by side.
type Comparison struct {
	A         Side    `json:"a"`
	B         Side    `json:"b"`
	ToolDelta []Delta `json:"toolDelta"`
	PathDelta []Delta `json:"pathDelta"`
}

// Side is one of two compared traces.
type Side struct {
	Metadata  SideMetadata `json:"metadata"`
	TurnCount int          `json:"turnCount"`
	Tools     []string     `json:"tools"` // sorted, as Paths are
	Paths     []string     `json:"paths"`
	PathCount int          `json:"pathCount"`
	Cost      *float64     `json:"cost"`
	// What follows is additional.
	ToolCounts []ToolCount `json:"toolCounts"`
	PathCounts []PathCount `json:"pathCounts"`
	File       string      `json:"file"`
}

// SideMetadata is what the name of a file says about a trace.
type SideMetadata struct {
	CaseName    string  `json:"caseName"`
	Participant *string `json:"participant"`
	Marker      string  `json:"marker,omitempty"`
}

// Delta is the difference of a count. Exactly one of Tool and Path is set.
type Delta struct {
	Tool string `json:"tool,omitempty"`
	Path string `json:"path,omitempty"`
	A    int    `json:"a"`
	B    int    `json:"b"`
	Diff int    `json:"diff"`
}

// Name returns what differs.
func (d Delta) Name() string { return cmp.Or(d.Tool, d.Path) }

// traceName is the convention for file names: trace--<case>--<participant>.<role>.ndjson.
var traceName = lazyregexp.New(`^trace--(.+?)--([^.]+)\.[^.]+\.ndjson$`)

// Compare sets two traces side by side.
func Compare(ctx context.Context, a, b *Trace) (*Comparison, error) {
	var c Comparison
	var err error
	if c.A, err = a.side(ctx); err != nil {
		return nil, err
	}
	if c.B, err = b.side(ctx); err != nil {
		return nil, err
	}
	c.ToolDelta = deltas(toolMap(c.A), toolMap(c.B), func(name string) Delta { return Delta{Tool: name} })
	c.PathDelta = deltas(pathMap(c.A), pathMap(c.B), func(name string) Delta { return Delta{Path: name} })
	return &c, nil
}

func (t *Trace) side(ctx context.Context) (Side, error) {
	s := Side{Metadata: nameMetadata(t.Path), File: t.Name()}
	if err := t.Spool(); err != nil {
		return s, err
	}
	tools, info, err := t.Tools(ctx)
	if err != nil {
		return s, err
	}
	stats, _, err := t.Stats(ctx)
	if err != nil {
		return s, err
	}
	if s.PathCounts, err = t.Paths(ctx, ""); err != nil {
		return s, err
	}
	s.ToolCounts = tools
	s.Tools = slices.AppendSeq([]string{}, maps.Keys(toolMap(s)))
	s.Paths = slices.AppendSeq([]string{}, maps.Keys(pathMap(s)))
	slices.Sort(s.Tools)
	slices.Sort(s.Paths)
	s.TurnCount, s.PathCount, s.Cost = info.TurnCount, len(s.Paths), stats.Totals.TotalCostUSD
	if s.TurnCount == 0 {
		s.Metadata.Marker = "(empty)"
	}
	return s, nil
}

func nameMetadata(path string) SideMetadata {
	base := filepath.Base(path)
	if m := traceName.FindStringSubmatch(base); m != nil {
		return SideMetadata{CaseName: m[1], Participant: &m[2]}
	}
	return SideMetadata{CaseName: strings.TrimSuffix(base, ".ndjson")}
}

func toolMap(s Side) map[string]int {
	m := map[string]int{}
	for _, tool := range s.ToolCounts {
		m[tool.Tool] = tool.Count
	}
	return m
}

func pathMap(s Side) map[string]int {
	m := map[string]int{}
	for _, path := range s.PathCounts {
		m[path.Path] = path.Count
	}
	return m
}

func deltas(a, b map[string]int, named func(string) Delta) []Delta {
	names := maps.Clone(a)
	maps.Copy(names, b)
	all := []Delta{}
	for name := range names {
		d := named(name)
		d.A, d.B, d.Diff = a[name], b[name], b[name]-a[name]
		all = append(all, d)
	}
	slices.SortFunc(all, func(x, y Delta) int {
		return cmp.Or(cmp.Compare(max(y.Diff, -y.Diff), max(x.Diff, -x.Diff)), strings.Compare(x.Name(), y.Name()))
	})
	return all
}
