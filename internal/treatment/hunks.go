package treatment

import (
	"slices"
	"strings"
)

// hunk is a run of lines that one of two texts has and the other has not.
type hunk struct {
	after string // the line before it that both have
	lines []string
}

// split returns the lines of texts, folded.
func split(texts []string) []string {
	var lines []string
	for _, t := range texts {
		for line := range foldedLines(t) {
			lines = append(lines, string(line))
		}
	}
	return lines
}

// hunks lists what is in some lines and not in others. A line counts as often as it occurs.
func hunks(lines, others []string) []hunk {
	count := map[string]int{}
	for _, line := range others {
		count[line]++
	}
	var all []hunk
	before, open := "", false
	for _, line := range lines {
		if count[line] > 0 {
			count[line]--
			before, open = line, false
			continue
		}
		if !open {
			all = append(all, hunk{after: before})
			open = true
		}
		last := &all[len(all)-1]
		last.lines = append(last.lines, line)
	}
	return all
}

// texts compares texts by line. A run of lines that holds the content of a piece is declared with
// everything in it: the agent puts its own words around what it is given.
func (c *comparison) texts(what string, a, b, again []string) {
	before, after, noise := split(a), split(b), split(again)
	varies := newNoise(before, noise)
	gone, come := varies.without(hunks(before, after)), varies.without(hunks(after, before))
	for _, was := range gone {
		d := Difference{What: what, Before: strings.Join(was.lines, "\n")}
		at := slices.IndexFunc(come, func(h hunk) bool { return h.after == was.after })
		var is hunk
		if at >= 0 {
			is = come[at]
			come = slices.Delete(come, at, at+1)
			d.After = strings.Join(is.lines, "\n")
		}
		d.Declared = c.declared(was.lines, is.lines)
		c.add(d)
	}
	for _, is := range come {
		c.add(Difference{What: what, After: strings.Join(is.lines, "\n"), Declared: c.declared(nil, is.lines)})
	}
}

// declared reports whether lines that were replaced by others hold the content of a piece.
func (c *comparison) declared(was, is []string) bool {
	lines := slices.Concat(was, is)
	text := strings.Join(lines, "\n")
	offers := false
	for i := range c.pieces {
		p := &c.pieces[i]
		if p.mentioned(text) {
			return true
		}
		offers = offers || isAnnounced(p.Kind)
		own := map[string]bool{}
		for line := range foldedLines(p.Text) {
			own[string(line)] = len(line) >= leastLine
		}
		if folded := fold(p.Text); folded != "" && strings.Contains(text, folded) ||
			slices.ContainsFunc(lines, func(line string) bool { return own[line] }) {
			return true
		}
	}
	return offers && len(was) == len(is) && len(is) > 0 && allShortened(was, is)
}

// allShortened reports whether lines are entries of a list that was shortened to make room for
// others: the same names, with more or less of their descriptions.
func allShortened(was, is []string) bool {
	for i := range is {
		name, _, _ := strings.Cut(was[i], ":")
		if !hasPrefix(name, "- ", "* ") || !strings.HasPrefix(is[i], name) {
			return false
		}
	}
	return true
}

// noise is what differs between two starts of one arm.
type noise struct {
	lines    map[string]bool
	patterns [][]string // words; "" stands for any
}

func newNoise(a, again []string) noise {
	n := noise{lines: map[string]bool{}}
	first, second := hunks(a, again), hunks(again, a)
	for _, h := range slices.Concat(first, second) {
		for _, line := range h.lines {
			n.lines[line] = true
		}
	}
	for _, was := range first {
		at := slices.IndexFunc(second, func(h hunk) bool { return h.after == was.after })
		if at < 0 {
			continue
		}
		for i := range min(len(was.lines), len(second[at].lines)) {
			n.learn(was.lines[i], second[at].lines[i])
		}
	}
	return n
}

// learn notes which words of a line vary; a line of which most words do is not learned.
func (n *noise) learn(a, b string) {
	was, is := strings.Fields(a), strings.Fields(b)
	if len(was) != len(is) {
		return
	}
	vary := 0
	for i := range was {
		if was[i] != is[i] {
			was[i] = ""
			vary++
		}
	}
	if 2*vary <= len(was) {
		n.patterns = append(n.patterns, was)
	}
}

// without returns hunks without the lines that vary from start to start.
func (n *noise) without(all []hunk) []hunk {
	var kept []hunk
	for _, h := range all {
		h.lines = slices.DeleteFunc(h.lines, n.varies)
		if len(h.lines) > 0 {
			kept = append(kept, h)
		}
	}
	return kept
}

func (n *noise) varies(line string) bool {
	if n.lines[line] {
		return true
	}
	words := strings.Fields(line)
	return slices.ContainsFunc(n.patterns, func(pattern []string) bool {
		return len(pattern) == len(words) && matches(pattern, words)
	})
}

func matches(pattern, words []string) bool {
	for i := range pattern {
		if pattern[i] != "" && pattern[i] != words[i] {
			return false
		}
	}
	return true
}
