package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

const (
	maxTreatmentLines = 8
	maxNamedPieces    = 3
)

// lines says in words what models were given. Pieces of one kind with the same counts share a line.
func (t *Treatment) lines() []string {
	type shape struct{ kind, text string }
	var shapes []shape
	names := map[shape][]string{}
	for i := range t.Pieces {
		p := &t.Pieces[i]
		s := shape{p.Kind, p.text(len(t.Arms) > 1)}
		if names[s] == nil {
			shapes = append(shapes, s)
		}
		names[s] = append(names[s], p.Name)
	}
	var lines []string
	for i, s := range shapes {
		if i == maxTreatmentLines {
			lines = append(lines, fmt.Sprintf("treatment: %s of other pieces; --format json has all",
				Count(len(shapes)-i, "line")))
			break
		}
		lines = append(lines, fmt.Sprintf("treatment: %s %s", PiecesText(s.kind, names[s]), s.text))
	}
	for i := range t.Pieces {
		lines = append(lines, t.Pieces[i].outcomes(len(t.Arms) > 1)...)
	}
	return append(lines, t.armLines()...)
}

// armLines says what holds for all pieces of an arm.
func (t *Treatment) armLines() []string {
	var lines []string
	unrecorded, undelivered := 0, []string{}
	for _, a := range t.Arms {
		unrecorded += a.Unrecorded
		if a.NotDelivered > 0 {
			undelivered = append(undelivered, fmt.Sprintf("%s of %s", Count(a.NotDelivered, "run"), a.Arm))
		}
	}
	if len(undelivered) > 0 {
		lines = append(lines, fmt.Sprintf("treatment: %s lacked it and count as missing data (%s)",
			series(undelivered), ledger.ErrorNotDelivered))
	}
	if unrecorded > 0 {
		lines = append(lines,
			fmt.Sprintf("treatment: delivery unknown in %s, %s", Count(unrecorded, "run"), WhyEarlier))
	}
	return append(lines, t.contextLine()...)
}

// contextLine says which agents read what of their project, where that differs.
func (t *Treatment) contextLine() []string {
	var contexts []string
	var parts []string
	for _, a := range t.Arms {
		names := slices.Sorted(maps.Keys(a.Context))
		contexts = append(contexts, strings.Join(names, " and "))
		if len(names) > 0 {
			parts = append(parts, fmt.Sprintf("%s of %s", strings.Join(names, " and "), a.Arm))
		}
	}
	contexts = slices.DeleteFunc(contexts, func(c string) bool { return c == "" })
	slices.Sort(contexts)
	if len(slices.Compact(contexts)) < 2 && !strings.Contains(strings.Join(contexts, ""), " and ") {
		return nil
	}
	return []string{"treatment: agents read different parts of their project: context " + series(parts)}
}

// text returns the counts of a piece: "given in 36 of 36 runs of after and 0 of 36 of before,
// opened in 21 of 36 (58% [41, 74])".
func (p *Piece) text(named bool) string {
	arms := slices.Clone(p.Arms)
	slices.SortStableFunc(arms, func(a, b Given) int { // who has it comes first
		return min(1, b.held) - min(1, a.held)
	})
	of := func(arm string) string {
		if named {
			return " of " + arm
		}
		return ""
	}
	var given, opened []string
	open := slices.DeleteFunc(slices.Clone(arms), func(g Given) bool { return g.OpenedRate == nil })
	for i := range arms {
		g := &arms[i]
		runs := ""
		if i == 0 {
			runs = " runs"
			if g.Runs == 1 {
				runs = " run"
			}
		}
		given = append(given, fmt.Sprintf("%d of %d%s%s%s", g.given(), g.Runs, runs, of(g.Arm), g.details()))
	}
	for i := range open {
		g := &open[i]
		whose := ""
		if len(open) > 1 {
			whose = of(g.Arm)
		}
		opened = append(opened, fmt.Sprintf("%d of %d%s (%s)", g.Opened.Runs, g.Opened.Runs+g.Unopened.Runs, whose,
			wholePercent(g.OpenedRate)))
	}
	text := "given in " + series(given)
	if p.versions() {
		text = "(another version in each arm) " + text
	}
	if len(opened) > 0 {
		text += ", opened in " + series(opened)
	}
	return text
}

// versions reports whether several arms have the piece, in different versions.
func (p *Piece) versions() bool {
	having := slices.DeleteFunc(slices.Clone(p.Arms), func(g Given) bool { return len(g.Digests) == 0 })
	return p.declared() && len(having) > 1 && slices.ContainsFunc(having, func(g Given) bool {
		return !slices.Equal(g.Digests, having[0].Digests)
	})
}

// details says what is not whole.
func (g *Given) details() string {
	var parts []string
	if g.Part+g.Named > 0 && g.Whole > 0 {
		parts = append(parts, fmt.Sprintf("whole in %d", g.Whole))
	}
	if g.Part > 0 {
		parts = append(parts, fmt.Sprintf("in part in %d", g.Part))
	}
	if g.Named > 0 {
		parts = append(parts, fmt.Sprintf("by name only in %d", g.Named))
	}
	if g.Unknown > 0 {
		parts = append(parts, fmt.Sprintf("delivery unknown in %d: %s", g.Unknown, reasonsText(g.Why)))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// reasonsText names the reasons, the most frequent first.
func reasonsText(reasons map[string]int) string {
	names := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		if reasons[a] != reasons[b] {
			return reasons[b] - reasons[a]
		}
		return strings.Compare(a, b)
	})
	return strings.Join(names, "; ")
}

// outcomes shows how often runs passed that opened a piece, and those that did not.
func (p *Piece) outcomes(named bool) []string {
	var lines []string
	for i := range p.Arms {
		g := &p.Arms[i]
		if g.Opened == nil || g.Opened.Runs == 0 || g.Unopened.Runs == 0 {
			continue
		}
		whose := "runs"
		if named {
			whose = "runs of " + g.Arm
		}
		lines = append(lines, fmt.Sprintf("not randomised: %s that opened the %s passed in %s, the others in %s",
			whose, PiecesText(p.Kind, []string{p.Name}), g.Opened.text(), g.Unopened.text()))
	}
	return lines
}

func (o *OpenedRuns) text() string {
	return fmt.Sprintf("%d of %d (%s)", o.Passed, o.Runs, wholePercent(o.PassRate))
}

// wholePercent shows a share of few runs: more digits would promise too much.
func wholePercent(i *stats.Interval) string {
	if i == nil {
		return dash
	}
	return fmt.Sprintf("%.0f%% [%.0f, %.0f]", 100*i.Est, 100*i.Lo, 100*i.Hi)
}

// kindWords are the words for kinds of pieces, for one and for several.
var kindWords = map[string][2]string{
	ledger.PieceInstructions: {"instructions", "instructions"},
	ledger.PieceSkill:        {"skill", "skills"},
	ledger.PieceAgent:        {"sub-agent", "sub-agents"},
	ledger.PieceCommand:      {"command", "commands"},
	ledger.PiecePrompt:       {"prompt", "prompts"},
	ledger.PieceProfile:      {"profile", "profiles"},
	ledger.PieceServer:       {"tool server", "tool servers"},
	ledger.PieceSettings:     {"settings", "settings"},
	ledger.PieceFile:         {"file", "files"},
}

// PiecesText names pieces of one kind.
func PiecesText(kind string, names []string) string {
	words, known := kindWords[kind]
	if !known {
		words = [2]string{kind, kind}
	}
	word := words[min(len(names), 2)-1]
	if len(names) > maxNamedPieces {
		return fmt.Sprintf("%s %s and %d more", word, strings.Join(names[:maxNamedPieces], ", "),
			len(names)-maxNamedPieces)
	}
	if len(names) == 1 && names[0] == word { // an arm has one prompt, which has no name
		return word
	}
	return strings.TrimSpace(word + " " + series(names))
}

// series joins a list: a, b and c.
func series(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

// unknownRuns counts the runs of which it is not known whether they were given everything, and why.
func (t *Treatment) unknownRuns() (unknown, runs int, why map[string]int) {
	why = map[string]int{}
	for i, a := range t.Arms {
		runs += a.Runs
		most := a.Unrecorded
		if a.Unrecorded > 0 {
			why[WhyEarlier] += a.Unrecorded
		}
		for j := range t.Pieces {
			if p := &t.Pieces[j]; p.declared() && p.Arms[i].Unknown > most {
				most = p.Arms[i].Unknown
				maps.Copy(why, p.Arms[i].Why)
			}
		}
		unknown += most
	}
	return unknown, runs, why
}

// Remark is what belongs in the same sentence as a decision: that delivery is unknown, and which of
// the skills in which the arms differ were never opened.
func (t *Treatment) Remark() string {
	var remarks []string
	switch unknown, runs, _ := t.unknownRuns(); {
	case unknown > 0 && unknown == runs:
		remarks = append(remarks, "delivery unknown")
	case unknown > 0:
		remarks = append(remarks, fmt.Sprintf("delivery unknown in %d of %s", unknown, Count(runs, "run")))
	}
	return strings.Join(append(remarks, t.neverOpened()...), "; ")
}

// neverOpened names what was offered and never opened, of what the arms differ in.
func (t *Treatment) neverOpened() []string {
	byKind := map[[2]string][]string{} // kind, and where
	var order [][2]string
	for i := range t.Pieces {
		p := &t.Pieces[i]
		if !p.declared() || len(t.Arms) > 1 && !p.Differs {
			continue
		}
		var never []string
		offered := 0
		for j := range p.Arms {
			if g := &p.Arms[j]; g.Opened != nil {
				offered++
				if g.Opened.Runs == 0 {
					never = append(never, g.Arm)
				}
			}
		}
		if len(never) == 0 {
			continue
		}
		where := ""
		if len(never) < offered {
			where = " in " + series(never)
		}
		key := [2]string{p.Kind, where}
		if byKind[key] == nil {
			order = append(order, key)
		}
		byKind[key] = append(byKind[key], p.Name)
	}
	var texts []string
	for _, key := range order {
		verb := "was"
		if len(byKind[key]) > 1 {
			verb = "were"
		}
		texts = append(texts, fmt.Sprintf("the %s %s never opened%s", PiecesText(key[0], byKind[key]), verb, key[1]))
	}
	return texts
}

// Undelivered returns why it is not proven that every run with a verdict was given what arms and
// the family bring; empty if it is.
func (t *Treatment) Undelivered() string {
	if unknown, runs, why := t.unknownRuns(); unknown > 0 {
		return fmt.Sprintf("delivery is unknown in %d of %s: %s", unknown, Count(runs, "run"), reasonsText(why))
	}
	for i := range t.Pieces {
		p := &t.Pieces[i]
		for j := range p.Arms {
			if g := &p.Arms[j]; p.shown() && g.held > 0 && g.Absent > 0 {
				return fmt.Sprintf("the %s was absent in %d of %s of %s", PiecesText(p.Kind, []string{p.Name}),
					g.Absent, Count(g.Runs, "run"), g.Arm)
			}
		}
	}
	return ""
}
