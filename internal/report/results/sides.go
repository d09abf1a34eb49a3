package results

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/report"
)

// errNotYet is the error of a run directory without results.
var errNotYet = errors.New("no results yet")

// ChoiceError reports a side of a comparison that does not name one arm.
type ChoiceError struct{ reason string }

func (e *ChoiceError) Error() string { return e.reason }

func choiceErrorf(format string, args ...any) error {
	return &ChoiceError{fmt.Sprintf(format, args...)}
}

// SplitArm reads one side of a comparison: a run directory, or DIR:ARM. resolve, if set, turns a
// path as the user wrote it into one that can be opened.
func SplitArm(text string, resolve func(path string) string) (dir, arm string) {
	path := text
	if resolve != nil {
		path = resolve(text)
	}
	if _, err := os.Stat(path); err != nil {
		if at := strings.LastIndex(text, ":"); at > 0 {
			return text[:at], text[at+1:]
		}
	}
	return text, ""
}

// Sides returns what is compared, the baseline first: two sides, each DIR or DIR:ARM, or all arms
// of a single directory. read builds the report of a directory.
func Sides(sides []string, resolve func(string) string, read func(dir string) (*report.Report, error)) (
	[]*report.Group, error,
) {
	if len(sides) != 2 {
		return allArms(sides[0], read)
	}
	built := map[string]*report.Report{}
	var groups []*report.Group
	for _, side := range sides {
		dir, arm := SplitArm(side, resolve)
		if built[dir] == nil {
			var err error
			if built[dir], err = read(dir); err != nil {
				return nil, err
			}
		}
		g, err := pickArm(built[dir], dir, arm)
		if err != nil {
			return nil, err
		}
		own := *g // the same arm may be on both sides, under two names
		own.Directory = filepath.Clean(dir)
		groups = append(groups, &own)
	}
	if groups[0].Name == groups[1].Name {
		groups[0].Name, groups[1].Name = sides[0], sides[1]
	}
	return groups, nil
}

func allArms(dir string, read func(dir string) (*report.Report, error)) ([]*report.Group, error) {
	built, err := read(dir)
	switch {
	case err != nil:
		return nil, err
	case len(built.Groups) == 0:
		return nil, fmt.Errorf("%s: %w", dir, errNotYet)
	case len(built.Groups) == 1:
		return nil, choiceErrorf("%s has one arm; a comparison needs two", dir)
	}
	return groupsOf(built), nil
}

// pickArm finds the group of an arm of a run directory; without a name, that of its only arm.
func pickArm(r *report.Report, dir, arm string) (*report.Group, error) {
	var names []string
	var matching []*report.Group
	for i := range r.Groups {
		g := &r.Groups[i]
		if !slices.Contains(names, g.Provenance.Arm) {
			names = append(names, g.Provenance.Arm)
		}
		if arm == "" || g.Provenance.Arm == arm {
			matching = append(matching, g)
		}
	}
	switch {
	case len(r.Groups) == 0:
		return nil, fmt.Errorf("%s: %w", dir, errNotYet)
	case len(matching) == 1:
		return matching[0], nil
	case len(matching) == 0:
		return nil, choiceErrorf("%s has no arm %q; it has %s", dir, arm, strings.Join(names, ", "))
	case arm == "":
		return nil, choiceErrorf("%s has the arms %s; choose one: %s:%s", dir, strings.Join(names, ", "), dir, names[0])
	default:
		return nil, choiceErrorf("arm %s in %s mixes runs measured under different conditions, so it cannot be "+
			"compared as one arm (fit-benchmark report shows them); --allow drift accepts a changed model or agent "+
			"version", arm, dir)
	}
}
