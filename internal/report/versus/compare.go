package versus

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report"
)

// Side is a run directory in a comparison across directories, or one arm of it.
type Side struct {
	Name   string // as the user gave it
	Source *Source
	Arm    string // empty: all arms
}

// Comparison is the result of a comparison across run directories.
type Comparison struct {
	SchemaVersion string         `json:"schemaVersion"`
	Statement     string         `json:"statement"`
	PerAgent      []AgentSummary `json:"perAgent"`
	Pairs         []Pair         `json:"pairs"`
	Warnings      []string       `json:"warnings"`
	// Validity is the page that says what a claim rests on.
	Validity string `json:"validity"`

	first []string // what is said right below the statement
}

// Compare compares the first side with each of the others, task by task. Sides with several arms
// are compared arm by arm, by name; a side with one arm is compared with each of the other's.
func Compare(sides []Side) (*Comparison, error) {
	merged := &builder{source: &Source{}, report: &EvalReport{}}
	owners := make([][]*arm, len(sides))
	for i := range sides {
		one, err := merged.take(&sides[i])
		if err != nil {
			return nil, err
		}
		owners[i] = one
	}
	var pairs [][2]*arm
	itself := false
	for i, other := range owners[1:] {
		same := sides[0].Source.sameDir(sides[i+1].Source)
		for _, a := range owners[0] {
			for _, b := range other {
				alike := a.Provenance.Arm == b.Provenance.Arm
				if same && alike {
					itself = true
					continue
				}
				if len(owners[0]) == 1 || len(other) == 1 || alike {
					pairs = append(pairs, [2]*arm{a, b})
				}
			}
		}
	}
	switch {
	case len(pairs) == 0 && itself:
		return nil, fmt.Errorf("%s is compared with itself; name two directories, or two arms of one: DIRECTORY:ARM",
			sides[0].Name)
	case len(pairs) == 0:
		return nil, fmt.Errorf("%s and the others have no arm of the same name; name one: DIRECTORY:ARM", sides[0].Name)
	}
	if err := merged.comparePairs(pairs); err != nil {
		return nil, err
	}
	merged.state()
	c := &Comparison{
		SchemaVersion: schemaVersion,
		Statement:     merged.report.Statement,
		PerAgent:      merged.report.PerAgent,
		Pairs:         merged.report.Pairs,
		Warnings:      orEmpty(merged.report.Warnings),
		Validity:      report.ValidityPage,
		first:         firstLines(merged.arms),
	}
	return c, nil
}

// sameDir reports whether two sources are the same directory, even under different names.
func (s *Source) sameDir(other *Source) bool {
	one, err := os.Stat(s.dir)
	two, otherErr := os.Stat(other.dir)
	return err == nil && otherErr == nil && os.SameFile(one, two)
}

// take adds the arms of a side and returns them.
func (b *builder) take(side *Side) ([]*arm, error) {
	judgement, err := side.Source.Judgement()
	if err != nil {
		return nil, err
	}
	own := &builder{source: side.Source, judgement: judgement, known: judgement.known()}
	built, err := own.build()
	if err != nil {
		return nil, err
	}
	if b.known == nil {
		b.known = own.known
	}
	// verdicts of different judges are not corrected
	maps.DeleteFunc(b.known, func(dimension string, ours *judge.Calibration) bool {
		theirs := own.known[dimension]
		return theirs == nil || theirs.ID != ours.ID
	})
	for _, task := range built.Tasks {
		if !slices.ContainsFunc(b.report.Tasks, func(t Task) bool { return t.ID == task.ID }) {
			b.report.Tasks = append(b.report.Tasks, task)
		}
	}
	b.source.options, b.report.Seed = side.Source.options, built.Seed
	var taken []*arm
	var names []string
	for i := range own.arms {
		one := &own.arms[i]
		names = append(names, one.Provenance.Arm)
		if side.Arm != "" && one.Provenance.Arm != side.Arm {
			continue
		}
		one.Name, one.Directory = side.Name, filepath.Clean(side.Source.dir)
		if side.Arm == "" {
			one.Name = side.Name + ":" + built.PerAgent[i].Arm
		}
		built.PerAgent[i].Arm = one.Name
		taken = append(taken, one)
		b.arms = append(b.arms, *one)
		b.report.PerAgent = append(b.report.PerAgent, built.PerAgent[i])
	}
	if len(taken) == 0 {
		return nil, fmt.Errorf("%s has no arm %q; it has %s", side.Name, side.Arm, strings.Join(names, ", "))
	}
	return taken, nil
}

// firstLines are what readers see right below the statement about arms.
func firstLines(arms []arm) []string {
	groups := make([]*report.Group, len(arms))
	for i := range arms {
		groups[i] = arms[i].Group
	}
	return report.FirstLines(groups...)
}

// compareAll compares every two arms, or all with the first where that was planned. What is
// compared with a baseline comes first: its differences have the sign that they have everywhere.
func (b *builder) compareAll() error {
	var pairs [][2]*arm
	for i := range b.arms {
		if i > 0 && b.arms[0].ToBaseline() {
			break
		}
		for j := i + 1; j < len(b.arms); j++ {
			pair := [2]*arm{&b.arms[i], &b.arms[j]}
			if b.source.baseline {
				slices.Reverse(pair[:])
			}
			pairs = append(pairs, pair)
		}
	}
	return b.comparePairs(pairs)
}

// comparePairs compares groups two by two as one family.
func (b *builder) comparePairs(pairs [][2]*arm) error {
	calibrated := 0 // dimensions in which something may be claimed
	for _, known := range b.known {
		if known.Valid() {
			calibrated++
		}
	}
	config := report.CompareConfig{
		Alpha: b.source.options.Alpha,
		Seed:  b.report.Seed,
		Tests: len(pairs) * (1 + calibrated),
		Pairs: len(pairs),
		Allow: b.source.options.Allow,
	}
	b.report.Pairs = make([]Pair, len(pairs)) // settle keeps pointers into it
	claims := &report.Claims{}
	for at, pair := range pairs {
		if err := b.compare(&b.report.Pairs[at], pair[0], pair[1], config, claims); err != nil {
			return err
		}
	}
	return claims.Decide()
}
