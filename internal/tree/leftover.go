package tree

import (
	"path"
	"slices"
	"strings"
)

// leftovers are what the tools of each language leave in a directory: caches, installed packages
// and builds. They are nobody's work.
var leftovers = map[string][]string{
	"Python": {
		"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox", ".coverage",
	},
	"JavaScript": {"node_modules", ".nyc_output", ".parcel-cache", ".turbo"},
	"Rust":       {"target/debug", "target/release"},
	"Java":       {".gradle", "target/classes", "target/test-classes", "target/surefire-reports"},
	"agents":     {"apm_modules"},
	"macOS":      {".DS_Store"},
}

// Leftover returns the part of a path up to the first directory or file that tools of a language
// leave behind, or "" if none does.
func Leftover(name string) string {
	end := 0
	for part := range strings.SplitSeq(name, "/") {
		end += len(part)
		dir := name[:end]
		for _, names := range leftovers {
			if slices.ContainsFunc(names, func(left string) bool {
				return dir == left || strings.HasSuffix(dir, "/"+left)
			}) {
				return dir
			}
		}
		end++
	}
	if path.Ext(name) == ".pyc" {
		return name
	}
	return ""
}
