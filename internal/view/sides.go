package view

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/results"
)

// side is one side of a comparison of two experiments: an arm of a run directory.
type side struct {
	at  location
	arm string
}

// shown names a side as fit-benchmark compare takes it.
func (s side) shown() string { return s.at.shown + ":" + s.arm }

// sidesIn separates the two sides in the id of a comparison: ID:ARM|ID:ARM, with escaped names.
const sidesIn = "|"

// comparisonOf finds the comparison of two experiments that an id names.
func (s *Server) comparisonOf(id string) (location, error) {
	found := location{id: id}
	var names []string
	for part := range strings.SplitSeq(id, sidesIn) {
		dir, escaped, named := strings.Cut(part, ":")
		arm, err := url.PathUnescape(escaped)
		if err != nil || !named || strings.Contains(dir, sidesIn) {
			return found, badRequest("a comparison is named ID:ARM|ID:ARM, not " + quote(id))
		}
		at, err := s.directory(dir)
		if err != nil {
			return found, err
		}
		found.sides = append(found.sides, side{at: at, arm: arm})
		names = append(names, side{at: at, arm: arm}.shown())
	}
	if len(found.sides) != 2 {
		return found, badRequest("a comparison has two sides, not " + quote(id))
	}
	found.shown = strings.Join(names, " against ")
	return found, nil
}

// stamp changes whenever a file that a snapshot is made from does.
func (at *location) stamp() string {
	if len(at.sides) == 0 {
		return stampOf(at.path)
	}
	stamp := ""
	for i := range at.sides {
		stamp += stampOf(at.sides[i].at.path) + sidesIn
	}
	return stamp
}

// loadComparison compares two arms as fit-benchmark compare does. What keeps them from being
// compared is part of the answer.
func (s *Server) loadComparison(at location) *snapshot {
	stamp := at.stamp() // before anything is read
	dirs := map[string]location{}
	for _, one := range at.sides {
		dirs[one.at.shown] = one.at
	}
	reader := results.Reader{
		Resolve: func(path string) string { return dirs[path].path },
		Load: func(dir string) (*results.Results, error) {
			found, err := results.Load([]string{dirs[dir].path}, true, nil)
			if err == nil {
				found.Allow = s.cfg.Allow
			}
			return found, err
		},
		Build: func(found *results.Results) (*report.Report, error) {
			return found.Build(s.ctx, s.auditor(), shownK, true)
		},
	}
	groups, err := reader.Sides([]string{at.sides[0].shown(), at.sides[1].shown()})
	if err != nil {
		text := err.Error()
		for _, one := range at.sides {
			text = shown(one.at, text)
		}
		return &snapshot{
			at:      at,
			stamp:   stamp,
			found:   &results.Results{},
			problem: text,
		}
	}
	made := compare(groups, s.cfg.Allow)
	made.at, made.stamp = at, stamp
	names := []string{groups[0].Name, groups[1].Name}
	for _, c := range made.cells { // they are those of the two experiments
		if i := slices.Index(names, c.Arm); i >= 0 {
			c.Of = &cellOf{Experiment: at.sides[i].at.id, Arm: at.sides[i].arm}
		}
	}
	return made
}

// cellOf says where a cell of a comparison belongs.
type cellOf struct {
	Experiment string `json:"experiment"`
	Arm        string `json:"arm"`
}

func (s *Server) auditor() results.Auditor {
	return results.Auditor{Dialects: s.cfg.Dialects, Prices: s.cfg.Prices}
}

// needsPath answers a question about a run directory that is not a comparison of others.
func (s *Server) needsPath(answer func(*http.Request, location) (any, error)) endpoint {
	return s.ofDirectory(func(r *http.Request, at location) (any, error) {
		if at.path == "" {
			return nil, conflict(at.shown+" is a comparison: open one of its experiments", "")
		}
		return answer(r, at)
	})
}
