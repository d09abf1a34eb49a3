package report

import (
	"fmt"
	"slices"
	"strings"
)

// unpromised is what no format of another harness says.
const unpromised = "not sealed by fit, not known to have run side by side, hidden tests and treatment not checked"

// importing notes which files of other harnesses the records of a group were read from, and what
// these cannot promise.
func (g *Group) importing() {
	var formats, doubts []string
	add := func(list *[]string, text string) {
		if text != "" && !slices.Contains(*list, text) {
			*list = append(*list, text)
		}
	}
	for i := range g.records {
		from := g.records[i].Imported
		if from == nil {
			continue
		}
		add(&formats, from.Format)
		add(&g.conditions, from.Conditions)
		for _, doubt := range from.Doubts {
			add(&doubts, doubt)
		}
		g.fractional = g.fractional || from.Fractional
		g.unplanned = max(g.unplanned, from.Incomplete)
	}
	if len(formats) == 0 {
		return
	}
	slices.Sort(g.conditions)
	slices.Sort(doubts)
	g.Imported = fmt.Sprintf("read from %s: %s", strings.Join(formats, ", "),
		strings.Join(append([]string{unpromised}, doubts...), "; "))
}

// importedLine says what the sources of groups cannot promise; empty where fit ran all of them.
func importedLine(groups ...*Group) string {
	first, alike, conditions := groups[0], true, []string{}
	var parts []string
	for _, g := range groups {
		alike = alike && g.Imported == first.Imported
		if g.Imported == "" {
			continue
		}
		parts = append(parts, g.Name+" "+g.Imported)
		if text := conditionsText(g); !slices.Contains(conditions, text) {
			conditions = append(conditions, text)
		}
	}
	if alike && len(parts) > 0 {
		parts = []string{first.Imported}
	}
	if len(conditions) > 1 {
		parts = append(parts, "their conditions differ: "+strings.Join(conditions, "; and "))
	}
	return strings.Join(parts, ". ")
}

func conditionsText(g *Group) string {
	if len(g.conditions) == 0 {
		return "not known"
	}
	return strings.Join(g.conditions, ", ")
}

// notOurs says that fit did not run what is in the groups.
func notOurs(basis *Basis) []string {
	var names []string
	for _, g := range basis.Groups {
		if g.Imported != "" {
			names = append(names, g.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("fit did not run %s: nobody knows what changed between the runs, or whether any are "+
		"missing", strings.Join(names, " and "))}
}
