package workspace

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/tree"
)

const (
	// maxMoved bounds the files on either side that are compared line by line to find out whether
	// one became the other, and maxMovedSize each of them.
	maxMoved     = 100
	maxMovedSize = 1 << 20
)

// renames returns the former names of files that were moved, by their new ones: those with the same
// content, and those at least half of which, in bytes, is lines of the other.
func (c *comparison) renames(before, after map[string]tree.Entry) (map[string]string, error) {
	only := func(files, others map[string]tree.Entry) []string {
		return slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(name string) bool {
			_, both := others[name]
			return both || files[name].IsLink() || files[name].Size == 0
		})
	}
	gone, found := only(before, after), map[string]string{}
	take := func(name, from string) {
		found[name] = from
		gone = slices.DeleteFunc(gone, func(other string) bool { return other == from })
	}
	var fresh []string
	for _, name := range only(after, before) {
		from := ""
		for _, other := range gone {
			if before[other].Sum == after[name].Sum && (from == "" || path.Base(other) == path.Base(name)) {
				from = other
			}
		}
		if from == "" {
			fresh = append(fresh, name)
		} else {
			take(name, from)
		}
	}
	if len(gone) > maxMoved || len(fresh) > maxMoved {
		return found, nil
	}
	for _, name := range fresh {
		best, most := "", 0.5
		for _, other := range gone {
			alike, err := c.alike(other, before[other], name, after[name])
			if err != nil {
				return nil, err
			}
			if alike >= most {
				best, most = other, alike
			}
		}
		if best != "" {
			take(name, best)
		}
	}
	return found, nil
}

// alike returns which part of the larger of two files is lines of the other, in bytes.
func (c *comparison) alike(from string, old tree.Entry, name string, new tree.Entry) (float64, error) {
	larger := max(old.Size, new.Size)
	if larger > maxMovedSize || 2*min(old.Size, new.Size) < larger {
		return 0, nil
	}
	a, binary, err := readForPatch(c.before, from, old)
	if err != nil || binary {
		return 0, err
	}
	b, binary, err := readForPatch(c.now, name, new)
	if err != nil || binary {
		return 0, err
	}
	lines, common := map[string]int{}, 0
	for line := range strings.Lines(string(a)) {
		lines[line]++
	}
	for line := range strings.Lines(string(b)) {
		if lines[line] > 0 {
			lines[line]--
			common += len(line)
		}
	}
	return float64(common) / float64(larger), nil
}
