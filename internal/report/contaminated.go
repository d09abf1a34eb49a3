package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fit-eval/fit/ledger"
)

// edition identifies one text of a piece across arms.
type edition struct {
	pieceKey
	digest string
}

func editionOf(p *ledger.Piece) edition { return edition{keyOf(p), p.Digest} }

// contaminated names arms whose runs were given what only another arm brings.
func contaminated(basis *Basis) []string {
	groups := basis.Groups
	brings := make([]map[edition]bool, len(groups))
	for i, g := range groups {
		brings[i] = g.brings()
	}
	var found []string
	for i, g := range groups {
		others := map[edition]string{} // who brings it
		for j := range groups {
			for v := range brings[j] {
				if !brings[i][v] {
					others[v] = groups[j].Name
				}
			}
		}
		found = append(found, g.givenOf(others)...)
	}
	return found
}

// brings returns what the arm of the group declares.
func (g *Group) brings() map[edition]bool {
	found := map[edition]bool{}
	for i := range g.records {
		if t := g.records[i].Treatment; t != nil {
			for j := range t.Pieces {
				if p := &t.Pieces[j]; p.From == ledger.FromArm {
					found[editionOf(p)] = true
				}
			}
		}
	}
	return found
}

// givenOf says in how many runs the models of a group were given what others bring.
func (g *Group) givenOf(others map[edition]string) []string {
	runs := 0
	counts := map[pieceKey]int{}
	by := map[pieceKey]string{}
	for i := range g.records {
		r := &g.records[i]
		if r.Verdict == ledger.Error {
			continue
		}
		runs++
		if r.Treatment == nil {
			continue
		}
		seen := map[pieceKey]bool{}
		for j := range r.Treatment.Pieces {
			p := &r.Treatment.Pieces[j]
			key, whose := keyOf(p), others[editionOf(p)]
			if seen[key] || !strays(p, whose != "") {
				continue
			}
			seen[key] = true
			counts[key]++
			if by[key] == "" {
				by[key] = whose
			}
		}
	}
	return g.strayTexts(runs, counts, by)
}

// strays reports whether a run was given a piece that its arm does not bring. What the files of the
// task bring is such a piece where another arm brings the same text.
func strays(p *ledger.Piece, elsewhere bool) bool {
	switch p.From {
	case ledger.FromOther:
		return slices.Contains([]string{ledger.GivenWhole, ledger.GivenPart, ledger.GivenName}, p.Given)
	case ledger.FromTask:
		return elsewhere && p.Digest != "" &&
			slices.Contains([]string{ledger.GivenWhole, ledger.GivenPart}, p.Given) &&
			slices.Contains([]string{ledger.PieceInstructions, ledger.PieceSkill, ledger.PieceAgent}, p.Kind)
	}
	return false
}

// strayTexts says it in words. Pieces of one kind with the same count and owner share a sentence.
func (g *Group) strayTexts(runs int, counts map[pieceKey]int, by map[pieceKey]string) []string {
	type shape struct {
		kind, whose string
		count       int
	}
	var shapes []shape
	names := map[shape][]string{}
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b pieceKey) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.name, b.name))
	})
	for _, key := range keys {
		s := shape{key.kind, cmp.Or(by[key], "another arm"), counts[key]}
		if names[s] == nil {
			shapes = append(shapes, s)
		}
		names[s] = append(names[s], key.name)
	}
	var texts []string
	for _, s := range shapes {
		them := "it"
		if len(names[s]) > 1 || kindWords[s.kind][0] == kindWords[s.kind][1] {
			them = "them"
		}
		texts = append(texts, fmt.Sprintf("%s was given the %s in %d of %s, although only %s brings %s", g.Name,
			PiecesText(s.kind, names[s]), s.count, Count(runs, "run"), s.whose, them))
	}
	return texts
}
