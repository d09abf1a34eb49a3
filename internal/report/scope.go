package report

import (
	"slices"
	"strings"
)

// scopeOf says which tasks a comparison holds for: what the plans of both sides say.
func scopeOf(a, b *Group) string {
	if a.Scope == b.Scope {
		return a.Scope
	}
	var parts []string
	for _, g := range []*Group{a, b} {
		if g.Scope != "" {
			parts = append(parts, g.Name+": "+g.Scope)
		}
	}
	return strings.Join(parts, "; ")
}

// joined joins the parts that are not empty.
func joined(by string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), by)
}
