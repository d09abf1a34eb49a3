package report

import (
	"fmt"
	"strings"

	"github.com/fit-eval/fit/internal/display"
)

// Declared says in what the arms of an experiment differ: by its plan, and by the first requests
// that they made when they were rehearsed.
type Declared struct {
	// Differs are short words about each arm, compared with the baseline, by name.
	Differs map[string][]string
	// Requests compare the baseline with other arms.
	Requests []RequestPair
}

// RequestPair is in what the first requests of two arms differ.
type RequestPair struct {
	Baseline, Arm string
	Differences   []RequestDifference
}

// RequestDifference is one thing in which the first requests of two arms differ.
type RequestDifference struct {
	What   string `json:"what"`
	Before string `json:"before,omitempty"` // in the baseline
	After  string `json:"after,omitempty"`
	// Cause says where it comes from: the arm, or a key of it, or the agent or model.
	Cause string `json:"cause,omitempty"`
	// Undeclared says that it comes with the agent or model: no arm asks for it.
	Undeclared bool `json:"undeclared,omitempty"`
}

// compareRequests returns in what the first requests of B and A differ; nil where nobody knows.
func compareRequests(a, b *Group) []RequestDifference {
	if a.Provenance.Experiment != b.Provenance.Experiment {
		return nil
	}
	for _, pair := range a.requests {
		switch {
		case pair.Baseline == a.Provenance.Arm && pair.Arm == b.Provenance.Arm:
			return pair.Differences
		case pair.Baseline == b.Provenance.Arm && pair.Arm == a.Provenance.Arm:
			turned := make([]RequestDifference, len(pair.Differences))
			for i, d := range pair.Differences {
				d.Before, d.After = d.After, d.Before
				turned[i] = d
			}
			return turned
		}
	}
	return nil
}

// shownRequests bounds the line about what comes with an agent or model.
const shownRequests = 400

// RequestsText shows what comes with the agent or model; empty where nothing does.
func RequestsText(differences []RequestDifference) string {
	var parts []string
	for _, d := range differences {
		if !d.Undeclared {
			continue
		}
		text := d.What
		if d.Before != "" || d.After != "" {
			text += fmt.Sprintf(" (%s; %s)", orNone(d.Before), orNone(d.After))
		}
		parts = append(parts, display.CutRunes(text, shownRequests/4))
	}
	if len(parts) == 0 {
		return ""
	}
	return "comes with the agent or model: " + display.CutRunes(strings.Join(parts, ", "), shownRequests)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// differing says in what B differs from A, as arms were declared. Plans say it of each arm and the
// baseline.
func differing(a, b *Group) []string {
	if len(a.Differs) == 0 {
		return b.Differs
	}
	var list []string
	for _, g := range []*Group{a, b} {
		if len(g.Differs) > 0 {
			list = append(list, fmt.Sprintf("%s has %s", g.Name, strings.Join(g.Differs, ", ")))
		}
	}
	return list
}
