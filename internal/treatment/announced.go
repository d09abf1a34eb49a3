package treatment

import (
	"strings"

	"github.com/fit-eval/fit/ledger"
)

// leadWords is how many words may be between the name of a skill and its description, such as the
// names of tags.
const leadWords = 8

// leastLead is how many words of a description after the name are no accident.
const leastLead = 3

// announced grades what is loaded on demand by what announces it: its name, and its description
// after it. A description alone proves nothing, because several skills may have it in common.
func (g *grader) announced(p *Piece, description string) {
	folded := fold(description)
	name, words := g.words(fold(p.Name)), g.words(folded)
	p.Given = ledger.GivenAbsent
	if len(name) == 0 {
		return
	}
	longest, offered := 0, (*part)(nil)
	var where *part
	for _, in := range g.parts {
		given := g.wordsOf(in)
		for at := range given {
			if given[at].sum != name[0].sum || !g.isName(in, at, name) {
				continue
			}
			if offered == nil && in.offers(given[at].start, given[at+len(name)-1].end) {
				offered = in
			}
			if n := lead(given[at+len(name):], words); n > longest {
				longest, where = n, in
			}
		}
	}
	switch {
	case longest > 0 && (longest >= leastLead || longest == len(words)):
		have, all := 0, 0
		for i, w := range words {
			if all += w.end - w.start; i < longest {
				have += w.end - w.start
			}
		}
		give(p, where, p.Name+": "+folded, float64(have)/float64(all))
	case offered != nil:
		give(p, offered, p.Name, 1)
		p.Given = ledger.GivenName
	case p.Hidden:
		p.Why = "its front matter keeps it from the model (disable-model-invocation)"
	}
}

// isName reports whether a name stands at a word of a part: not as a part of a longer name or of a
// path, and not in the instructions of the project.
func (g *grader) isName(in *part, at int, name []word) bool {
	given := g.wordsOf(in)
	if at+len(name) > len(given) {
		return false
	}
	for i := range name {
		if given[at+i].sum != name[i].sum || i > 0 && given[at+i].start-given[at+i-1].end > 1 {
			return false
		}
	}
	start, end := given[at].start, given[at+len(name)-1].end
	for _, s := range in.brought {
		if start >= s.start && end <= s.end {
			return false
		}
	}
	const joins = "/\\-_"
	return (start == 0 || !strings.ContainsRune(joins, rune(in.text[start-1]))) &&
		(end == len(in.text) || !strings.ContainsRune(joins, rune(in.text[end])))
}

// lead returns how many words of a description follow, from its beginning.
func lead(given, description []word) int {
	longest := 0
	for skip := 0; skip <= leadWords && skip < len(given); skip++ {
		n := 0
		for n < len(description) && skip+n < len(given) && given[skip+n].sum == description[n].sum {
			n++
		}
		longest = max(longest, n)
	}
	return longest
}

// offers reports whether a name in a text is an entry of a list or a value by itself. A task that
// says "use csv-tools" does not offer it.
func (in *part) offers(start, end int) bool {
	before, after := in.text[:start], in.text[end:]
	tagged := strings.HasSuffix(strings.TrimRight(before, " "), ">") &&
		strings.HasPrefix(strings.TrimLeft(after, " "), "</")
	item := hasSuffix(before, "- ", "* ", "• ", "- `", "- **", separator) &&
		hasPrefix(after, ":", " (", " -", " —", "`", "**", separator)
	if tagged || item || before == "" {
		return true
	}
	if in.name == inMessages {
		return false
	}
	return hasSuffix(before, ", ", "'", `"`, "`", ": ") && hasPrefix(after, ",", "'", `"`, "`") ||
		hasSuffix(before, ", ") && hasPrefix(after, ".", ")", separator, " <") ||
		in.name == inTools && hasSuffix(before, ": ") && hasPrefix(after, ".", ")", separator)
}

func hasSuffix(text string, endings ...string) bool {
	for _, ending := range endings {
		if strings.HasSuffix(text, ending) {
			return true
		}
	}
	return false
}

func hasPrefix(text string, beginnings ...string) bool {
	for _, beginning := range beginnings {
		if strings.HasPrefix(text, beginning) {
			return true
		}
	}
	return false
}
