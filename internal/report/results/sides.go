package results

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/foreign"
	"github.com/fit-eval/fit/ledger"
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
		for at := range len(text) { // names of arms may have colons too
			if text[at] != ':' || at == 0 {
				continue
			}
			if path = text[:at]; resolve != nil {
				path = resolve(path)
			}
			if _, err := os.Stat(path); err == nil {
				return text[:at], text[at+1:]
			}
		}
		if at := strings.LastIndex(text, ":"); at > 0 {
			return text[:at], text[at+1:]
		}
	}
	return text, ""
}

// Reader reads the sides of a comparison.
type Reader struct {
	// Resolve, if set, turns a path as the user wrote it into one that can be opened.
	Resolve func(path string) string
	Load    func(dir string) (*Results, error)
	Build   func(*Results) (*report.Report, error)
	// AcrossRevisions keeps tasks whose content differs.
	AcrossRevisions bool
}

// Sides returns what is compared, the baseline first: two sides, each DIR or DIR:ARM, or all arms
// of a single directory.
func (r *Reader) Sides(sides []string) ([]*report.Group, error) {
	groups, err := r.read(sides)
	for _, g := range groups {
		if len(g.Records()) == 0 {
			return nil, fmt.Errorf("arm %s: %w: none of its runs is recorded; repeat the run command to continue",
				g.Provenance.Arm, errNotYet)
		}
	}
	if err == nil && !r.AcrossRevisions {
		err = sameRevision(groups)
	}
	return groups, err
}

// sameRevision refuses groups that were measured on different tasks.
func sameRevision(groups []*report.Group) error {
	first := groups[0]
	for _, g := range groups[1:] {
		imported := g.Imported != "" || first.Imported != "" // its tasks say themselves whether they differ
		if !imported && g.Provenance.FamilyRevision != first.Provenance.FamilyRevision {
			return choiceErrorf("%s was measured on revision %s of the family, %s on %s: the tasks may differ; "+
				"use --across-revisions to compare them anyway", first.Name, first.Provenance.FamilyRevision, g.Name,
				g.Provenance.FamilyRevision)
		}
	}
	return nil
}

func (r *Reader) read(sides []string) ([]*report.Group, error) {
	dirs, arms := make([]string, len(sides)), make([]string, len(sides))
	found := map[string]*Results{}
	for i, side := range sides {
		if dirs[i] = side; len(sides) == 2 {
			dirs[i], arms[i] = SplitArm(side, r.Resolve)
		}
		if found[dirs[i]] != nil {
			continue
		}
		var err error
		if found[dirs[i]], err = r.Load(dirs[i]); err != nil {
			return nil, err
		}
	}
	if !r.AcrossRevisions {
		if err := leaveOut(found); err != nil {
			return nil, err
		}
	}
	groupCopies(slices.Collect(maps.Values(found))...)
	built := map[string]*report.Report{}
	for dir, one := range found {
		var err error
		if built[dir], err = r.Build(one); err != nil {
			return nil, err
		}
	}
	if len(sides) != 2 {
		return allArms(sides[0], built[sides[0]])
	}
	var groups []*report.Group
	for i, dir := range dirs {
		arm := arms[i]
		g, err := pickArm(built[dir], dir, arm)
		if err != nil {
			return nil, err
		}
		own := *g // the same arm may be on both sides, under two names
		own.Directory = filepath.Clean(dir)
		groups = append(groups, &own)
	}
	if sameRuns(groups[0], groups[1]) {
		return nil, choiceErrorf("%s is compared with itself; name two directories, or two arms of one: DIRECTORY:ARM",
			sides[0])
	}
	if groups[0].Name == groups[1].Name {
		groups[0].Name, groups[1].Name = sides[0], sides[1]
	}
	return groups, nil
}

// sameRuns reports whether two groups are of the same records, perhaps in copies of a directory.
func sameRuns(a, b *report.Group) bool {
	one, other := a.Records(), b.Records()
	return len(one) > 0 && slices.EqualFunc(one, other, func(x, y ledger.Record) bool {
		return x.Hash == y.Hash && x.Hash != ""
	})
}

// leaveOut leaves out the tasks of other harnesses that have one name and different content. Tasks
// of ours have a family, whose revision says whether they differ.
func leaveOut(found map[string]*Results) error {
	contents, differ, kept := map[string]string{}, map[string]bool{}, 0
	for _, one := range found {
		for i := range one.Records {
			r := &one.Records[i]
			if r.Imported == nil || r.Digests.Visible == "" {
				continue
			}
			if known, there := contents[r.TaskID]; there && known != r.Digests.Visible {
				differ[r.TaskID] = true
			}
			contents[r.TaskID] = r.Digests.Visible
		}
	}
	if len(differ) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(differ))
	text := fmt.Sprintf("left out %s whose content is not the same on both sides (%s); --across-revisions compares "+
		"them", report.Count(len(names), "task"), strings.Join(names[:min(len(names), maxShownTasks)], ", "))
	for _, one := range found {
		one.Records = slices.DeleteFunc(one.Records, func(r ledger.Record) bool { return differ[r.TaskID] })
		one.leftOut = text
		kept += len(one.Records)
	}
	if kept == 0 {
		return choiceErrorf("nothing is left to compare: %s", text)
	}
	return nil
}

// maxShownTasks bounds the tasks that are named.
const maxShownTasks = 5

func allArms(dir string, built *report.Report) ([]*report.Group, error) {
	switch {
	case len(built.Groups) == 0:
		return nil, fmt.Errorf("%s: %w", dir, errNotYet)
	case len(built.Groups) == 1:
		return nil, choiceErrorf("%s has one arm; a comparison needs two", dir)
	}
	if first, second := &built.Groups[0], &built.Groups[1]; strings.Contains(first.Imported, foreign.DoubtOrder) &&
		!slices.Contains(baselines, path.Base(first.Provenance.Arm)) {
		return nil, choiceErrorf("%s: %s; name the baseline first: '%[1]s:%[3]s' '%[1]s:%[4]s'", dir,
			foreign.DoubtOrder, first.Name, second.Name)
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
