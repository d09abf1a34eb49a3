package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fit-eval/fit/ledger"
)

// drift says in which ways models or programs changed while they were measured.
func drift(basis *Basis) []string {
	groups := basis.Groups
	var found []string
	for _, g := range groups {
		if g.drifted != "" && !slices.Contains(found, g.drifted) {
			found = append(found, g.drifted)
		}
		found = slices.Concat(found, g.servedTwice(), g.fellBack(), g.programChanged())
	}
	if len(groups) == 2 && len(found) == 0 {
		found = append(servedApart(groups[0], groups[1]), versionsApart(groups[0], groups[1])...)
	}
	return found
}

// counts counts runs by a value; what is not known is left out.
func (g *Group) counts(value func(*ledger.Record) string) map[string]int {
	counts := map[string]int{}
	for i := range g.records {
		if r := &g.records[i]; r.Verdict != ledger.Error {
			if v := value(r); v != "" {
				counts[v]++
			}
		}
	}
	return counts
}

// countsText shows counts: m1 in 20 runs and m2 in 16.
func countsText(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	var parts []string
	for i, name := range names {
		runs := Count(counts[name], "run")
		if i > 0 {
			runs = fmt.Sprint(counts[name])
		}
		parts = append(parts, short(name)+" in "+runs)
	}
	return series(parts)
}

// servedIn returns, for each name that the requests of a run had, the models that answered.
func servedIn(r *ledger.Record) map[string]map[string]bool {
	served := map[string]map[string]bool{}
	if r.Verdict == ledger.Error || r.Treatment == nil {
		return served
	}
	for _, s := range r.Treatment.Served {
		if s.Model == "" || s.Asked == "" {
			continue
		}
		if served[s.Asked] == nil {
			served[s.Asked] = map[string]bool{}
		}
		served[s.Asked][s.Model] = true
	}
	return served
}

// servedBy returns, for each name that requests had, in how many runs a model answered. Names that
// several models answered to in one run are left out there: fellBack names them.
func (g *Group) servedBy() map[string]map[string]int {
	served := map[string]map[string]int{}
	for i := range g.records {
		for asked, models := range servedIn(&g.records[i]) {
			if len(models) > 1 {
				continue
			}
			if served[asked] == nil {
				served[asked] = map[string]int{}
			}
			for model := range models {
				served[asked][model]++
			}
		}
	}
	return served
}

// servedTwice finds one name of a model that several models answered to, and runs in which another
// model did most of the work.
func (g *Group) servedTwice() []string {
	var found []string
	served := g.servedBy()
	for _, asked := range slices.Sorted(maps.Keys(served)) {
		if models := served[asked]; len(models) > 1 {
			found = append(found, fmt.Sprintf("%s asked for %s and was served by %d models, %s", g.Name, asked,
				len(models), countsText(models)))
		}
	}
	if models := g.counts(mainModel); len(found) == 0 && len(models) > 1 {
		found = append(found, fmt.Sprintf("%s was served by %d models, %s", g.Name, len(models), countsText(models)))
	}
	return found
}

// mainModel returns the model that answered the calls of the run's own model: agents ask smaller
// models for smaller things.
func mainModel(r *ledger.Record) string {
	if r.Treatment == nil {
		return ""
	}
	var best *ledger.Served
	own := func(s *ledger.Served) bool { return s.Asked == r.Model.Agent }
	for i := range r.Treatment.Served {
		s := &r.Treatment.Served[i]
		switch {
		case s.Model == "":
		case best == nil, own(s) && !own(best), own(s) == own(best) && s.Calls > best.Calls:
			best = s
		}
	}
	if best == nil {
		return ""
	}
	return best.Model
}

// fellBack finds runs in which one name was answered by several models.
func (g *Group) fellBack() []string {
	runs := 0
	models := map[string]bool{}
	for i := range g.records {
		fell := false
		for _, answered := range servedIn(&g.records[i]) {
			if len(answered) > 1 {
				fell = true
				maps.Copy(models, answered)
			}
		}
		if fell {
			runs++
		}
	}
	if runs == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the model changed in the middle of %s of %s: %s", Count(runs, "run"), g.Name,
		series(slices.Sorted(maps.Keys(models))))}
}

// programChanged finds an agent whose version, or whose program, was not the same in all runs.
func (g *Group) programChanged() []string {
	versions := g.counts(func(r *ledger.Record) string { return r.AgentVersion })
	if len(versions) > 1 {
		return []string{fmt.Sprintf("the agent of %s changed during the experiment: %s %s", g.Name, g.Provenance.Agent,
			countsText(versions))}
	}
	if programs := g.counts(programOf); len(programs) > 1 {
		return []string{fmt.Sprintf("the program of the agent of %s changed during the experiment, its version did "+
			"not: %s", g.Name, countsText(programs))}
	}
	return nil
}

// programOf identifies the program of a run's agent and the scripts that its entry names.
func programOf(r *ledger.Record) string {
	if len(r.AgentScripts) == 0 {
		if r.AgentSHA256 == "" {
			return ""
		}
		return "sha256:" + r.AgentSHA256
	}
	sum := sha256.New()
	fmt.Fprintln(sum, r.AgentSHA256)
	for _, script := range slices.Sorted(maps.Values(r.AgentScripts)) { // machines have them in different places
		fmt.Fprintln(sum, script)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// servedApart finds arms that asked for one model and were served by two.
func servedApart(a, b *Group) []string {
	var found []string
	first, second := a.servedBy(), b.servedBy()
	for _, asked := range slices.Sorted(maps.Keys(first)) {
		if second[asked] == nil {
			continue
		}
		one, two := slices.Sorted(maps.Keys(first[asked])), slices.Sorted(maps.Keys(second[asked]))
		if !slices.Equal(one, two) {
			found = append(found, fmt.Sprintf("both arms asked for %s, but %s was served by %s and %s by %s", asked,
				a.Name, series(one), b.Name, series(two)))
		}
	}
	return found
}

// versionsApart finds arms of one experiment whose agent is the same and has another version.
func versionsApart(a, b *Group) []string {
	p, q := a.Provenance, b.Provenance
	if p.Experiment != q.Experiment || p.Agent != q.Agent || p.AgentVersion == "" || q.AgentVersion == "" ||
		p.AgentVersion == q.AgentVersion {
		return nil
	}
	return []string{fmt.Sprintf("both arms are %s, but %s had version %s and %s version %s", p.Agent, a.Name,
		p.AgentVersion, b.Name, q.AgentVersion)}
}

// markDrift notes the groups of an arm that were kept apart because its model or the version of its
// agent changed.
func (r *Report) markDrift() {
	for i := range r.Groups {
		own := r.Groups[i].Provenance
		for j := range r.Groups {
			other := r.Groups[j].Provenance
			if i == j || other.Arm != own.Arm || other.Experiment != own.Experiment || other.ArmHash != own.ArmHash ||
				other.FamilyRevision != own.FamilyRevision || other.SkillSetHash != own.SkillSetHash {
				continue
			}
			r.Groups[i].drifted = fmt.Sprintf("the model or the agent of arm %s changed during the experiment", own.Arm)
		}
	}
}

// partOf reports whether two groups are parts of one arm, which changed; comparing them is no
// question.
func (g *Group) partOf(other *Group) bool { return g.drifted != "" && g.drifted == other.drifted }

// undelivered names arms none of whose runs was given what the arm brings.
func undelivered(basis *Basis) []string {
	var found []string
	for _, g := range basis.Groups {
		t := g.Treatment
		if t == nil {
			continue
		}
		if arm := t.Arms[0]; arm.Runs == 0 && arm.NotDelivered > 0 {
			found = append(found, fmt.Sprintf("no run of %s was given its treatment", g.Name))
			continue
		}
		var lacking []string
		given := false
		for i := range t.Pieces {
			p := &t.Pieces[i]
			switch {
			case !p.shown():
			case p.Arms[0].Runs > 0 && p.Arms[0].Absent == p.Arms[0].Runs:
				lacking = append(lacking, PiecesText(p.Kind, []string{p.Name}))
			default:
				given = true
			}
		}
		if len(lacking) > 0 && !given {
			found = append(found, fmt.Sprintf("no run of %s was given the %s", g.Name, series(lacking)))
		}
	}
	return found
}
