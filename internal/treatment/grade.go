package treatment

import (
	"math"
	"strings"

	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/ledger"
)

// part is everything that one part of a request says, in its common form.
type part struct {
	name  string
	text  string
	words []word
	// brought are the stretches of text that instructions account for. A name in them is not an
	// offer.
	brought []stretch
	covered int // bytes of text that pieces account for
}

type stretch struct{ start, end int }

// separator is between two strings of a request. No folded text contains it.
const separator = "\x00"

// parts collects what a request gives to the model.
func (q *request) parts() []*part {
	all := []*part{{name: inSystem}, {name: inMessages}, {name: inTools}}
	for _, p := range all {
		var b strings.Builder
		for _, t := range q.texts {
			if t.part == p.name {
				b.WriteString(fold(t.text))
				b.WriteString(separator)
			}
		}
		p.text = b.String()
	}
	return all
}

// grader grades the pieces of one request.
type grader struct {
	*reader
	request *request
	parts   []*part
}

// grade fills in what the request shows of a piece.
func (g *grader) grade(p *Piece, clean string) {
	switch {
	case p.Why != "":
		p.Given = ledger.GivenUnknown
		return
	case isAnnounced(p.Kind):
		g.announced(p, clean)
	case p.Kind == ledger.PieceServer:
		g.server(p)
	case strings.TrimSpace(clean) == "":
		return // settings and other files are no texts that a model is given
	default:
		g.content(p, clean)
	}
	if g.request.stored != "" && (p.Given == ledger.GivenAbsent || p.Given == ledger.GivenName) {
		p.Given, p.Why = ledger.GivenUnknown, "the request refers to content that is stored at the vendor ("+
			g.request.stored+")"
	}
}

// give notes how much of a text was found and where.
func give(p *Piece, in *part, text string, share float64) {
	p.Given, p.Where = ledger.GivenPart, in.name
	p.Share = math.Round(share*1000) / 1000
	if share >= 1 {
		p.Given, p.Share = ledger.GivenWhole, 0
	}
	bytes := int(share * float64(len(text)))
	p.Tokens = calls.EstimateTokens(bytes)
	in.covered += bytes
}

// content grades a text that is given at the start: instructions, a prompt, a profile.
func (g *grader) content(p *Piece, clean string) {
	folded := fold(clean)
	for _, in := range g.parts {
		if at := strings.Index(in.text, folded); at >= 0 {
			give(p, in, folded, 1)
			in.brought = append(in.brought, stretch{at, at + len(folded)})
			return
		}
	}
	var best *part
	share, found := 0.0, stretch{}
	for _, in := range g.parts {
		if s, at := g.share(in, folded); s > share {
			best, share, found = in, s, at
		}
	}
	if best == nil {
		p.Given = ledger.GivenAbsent
		return
	}
	give(p, best, folded, min(share, 0.999)) // something of it differs
	best.brought = append(best.brought, found)
}

// The words in a row that show a part of a text, and how little of a text is no part of it: agents'
// own prompts and other files have phrases in common with it.
const (
	rowLength  = 8
	leastShare = 0.02
	leastWords = 64
)

// share returns how much of a text a part of the request has, and the stretch in which it is. Rows
// of words count as often as the request has them, so that a phrase that many lines repeat does not
// stand for all of them.
func (g *grader) share(in *part, folded string) (float64, stretch) {
	words := g.words(folded)
	row := rowLength
	if len(words) < 2*row {
		row = max(3, len(words)/2)
	}
	if len(words) < row {
		return 0, stretch{}
	}
	rows := map[uint64][]int{}
	for at, sum := range rowSums(words, row) {
		rows[sum] = append(rows[sum], at)
	}
	covered := make([]bool, len(words))
	found := stretch{len(in.text), 0}
	given := g.wordsOf(in)
	for at, sum := range rowSums(given, row) {
		places := rows[sum]
		if len(places) == 0 {
			continue
		}
		rows[sum] = places[1:]
		for i := places[0]; i < places[0]+row; i++ {
			covered[i] = true
		}
		found.start, found.end = min(found.start, given[at].start), max(found.end, given[at+row-1].end)
	}
	count, have, all := 0, 0, 0
	for i, w := range words {
		all += w.end - w.start
		if covered[i] {
			count++
			have += w.end - w.start
		}
	}
	share := float64(have) / float64(all)
	if share < leastShare && count < leastWords {
		return 0, stretch{}
	}
	return share, found
}

// rowSums iterates over the sums of all rows of some words.
func rowSums(words []word, row int) func(yield func(int, uint64) bool) {
	const base = 0x9E3779B97F4A7C15
	return func(yield func(int, uint64) bool) {
		power := uint64(1)
		for range row {
			power *= base
		}
		sum := uint64(0)
		for i := range words {
			sum = sum*base + words[i].sum
			if i >= row {
				sum -= words[i-row].sum * power
			}
			if i >= row-1 && !yield(i-row+1, sum) {
				return
			}
		}
	}
}

// wordsOf returns the words of a part, which many pieces ask for.
func (g *grader) wordsOf(in *part) []word {
	if in.words == nil {
		in.words = g.words(in.text)
	}
	return in.words
}
