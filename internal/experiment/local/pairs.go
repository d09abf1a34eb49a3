package local

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/treatment"
	"github.com/fit-eval/fit/ledger"
)

// problems returns what is wrong with an arm's start: a piece that it declares is missing, or one
// that only others declare is there.
func (s *start) problems(all []*start) ([]string, error) {
	if s.given.Unknown != "" {
		return nil, nil
	}
	var problems []string
	if missing := notGiven(s.given.Pieces); len(missing) > 0 {
		problems = append(problems, fmt.Sprintf("arm %s: %v", s.declared.Name, s.attempt.notGivenError(missing)))
	}
	for _, other := range all {
		foreign := s.foreign(other)
		if len(foreign) == 0 {
			continue
		}
		found, err := treatment.Read(treatment.Config{
			Calls:       s.calls,
			Participant: agentLane,
			Context:     s.given.Context,
			Pieces:      foreign,
			Redactor:    s.attempt.redact,
		})
		if err != nil {
			return nil, err
		}
		for _, piece := range found.Pieces {
			if piece.Given == ledger.GivenWhole {
				problems = append(problems, fmt.Sprintf("arm %s: %s was given %s, which only arm %s brings; find "+
					"where else it comes from", s.declared.Name, s.declared.Agent, pieceName(piece),
					other.declared.Name))
			}
		}
	}
	return problems, nil
}

// leastForeign is the length of the shortest text that is looked for where it should not be:
// shorter ones may be there by chance.
const leastForeign = 24

// foreign returns the pieces that another arm declares, and that this one should not have: neither
// the same nor another version of it.
func (s *start) foreign(other *start) []treatment.Piece {
	if other == s {
		return nil
	}
	var foreign []treatment.Piece
	for _, piece := range other.declares() {
		if isForeign(piece, s.pieces) {
			foreign = append(foreign, piece)
		}
	}
	return foreign
}

// isForeign reports whether a file that another arm brings has no place among an attempt's own
// pieces: neither it nor another version of it.
func isForeign(piece treatment.Piece, own []treatment.Piece) bool {
	file := piece.Kind == ledger.PieceSkill || piece.Kind == ledger.PieceInstructions ||
		piece.Kind == ledger.PieceAgent
	return file && len(piece.Text) >= leastForeign && !slices.ContainsFunc(own, func(p treatment.Piece) bool {
		version := p.Kind == piece.Kind && p.Name == piece.Name && p.Kind != ledger.PieceInstructions
		return version || strings.Contains(p.Text, strings.TrimSpace(piece.Text))
	})
}

// comparePair finds in what the first requests of two arms differ, and what of it nothing declares.
// noise is another start of the first arm. again starts the second arm once more: what nothing
// declares must differ twice, because agents put some things in any order.
func comparePair(a, b, noise *start, again func() (*start, error)) (experiment.ArmPair, []string, error) {
	pair := experiment.ArmPair{Baseline: a.declared.Name, Arm: b.declared.Name}
	keys := differingKeys(a.declared, b.declared)
	pair.Differences = append(declaredKeys(a.declared, b.declared, keys), pieceDifferences(a, b)...)
	found := requestDifferences(a, b, noise, keys)
	undeclared := func(d experiment.ArmDifference) bool { return d.Cause == "" }
	if slices.ContainsFunc(found, undeclared) {
		second, err := again()
		if err != nil {
			return pair, nil, err
		}
		confirmed := requestDifferences(noise, second, a, keys)
		found = slices.DeleteFunc(found, func(d experiment.ArmDifference) bool {
			return undeclared(d) && !slices.Contains(confirmed, d)
		})
	}
	pair.Differences = append(pair.Differences, found...)
	pair.Same = len(pair.Differences) == 0 && a.declared.Hash == b.declared.Hash
	return pair, undeclaredProblems(pair, a.declared, b.declared), nil
}

// requestDifferences compares the first requests of two starts. What a piece of the arms accounts
// for is not among the differences: the piece is.
func requestDifferences(a, b, noise *start, keys []string) []experiment.ArmDifference {
	if a.first == nil || b.first == nil || noise.first == nil {
		return nil
	}
	var found []experiment.ArmDifference
	for _, d := range treatment.Differences(a.first, b.first, noise.first, differingPieces(a, b)) {
		if d.Declared || reordered(d.Before, d.After) {
			continue
		}
		found = append(found, experiment.ArmDifference{
			What:   d.What,
			Before: display.CutRunes(display.Line(d.Before), shownText),
			After:  display.CutRunes(display.Line(d.After), shownText),
			Cause:  causeOf(a, b, keys, d),
		})
	}
	return found
}

// reordered reports whether two texts have the same words in another order, as lists have that an
// agent makes of what it finds first.
func reordered(before, after string) bool {
	words := func(text string) []string {
		found := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		slices.Sort(found)
		return found
	}
	return slices.Equal(words(before), words(after))
}

// shownText is how much of a text that differs is kept.
const shownText = 200

// undeclaredProblems names the differences that nothing declares.
func undeclaredProblems(pair experiment.ArmPair, a, b *experiment.Arm) []string {
	var problems []string
	for _, d := range pair.Differences {
		if d.Cause != "" {
			continue
		}
		text := fmt.Sprintf("arms %s and %s differ in their %s, which nothing in the arms declares: %q and %q",
			pair.Baseline, pair.Arm, describePart(d.What), d.Before, d.After)
		if names := differingVariables(a, b); len(names) > 0 {
			text += "; the variables " + strings.Join(names, ", ") + " differ: compare them in arms that differ in " +
				"nothing else"
		} else {
			text += "; declare it (prompt, instructions, skills, files, settings), or make the arms alike"
		}
		problems = append(problems, text)
	}
	return problems
}

func describePart(what string) string {
	switch what {
	case treatment.DiffersSystem:
		return "system prompt"
	case treatment.DiffersOptions:
		return "request's options"
	default:
		return what
	}
}

// armKeys are the keys of an arm that change what the agent is or gets, with the values of an arm.
func armKeys(a *experiment.Arm) map[string]any {
	return map[string]any{
		"agent":        a.Agent,
		"model":        a.Model,
		"modelUrl":     a.ModelURL,
		"profile":      a.Profile,
		"skills":       a.Skills,
		"context":      a.Context == agent.ContextNone,
		"instructions": a.Instructions,
		"files":        a.Files,
		"mcp":          a.MCP,
		"settings":     a.Settings,
		"effort":       a.Effort,
		"temperature":  a.Temperature,
		"prompt":       a.Prompt,
		"tools":        a.AllowedTools,
		"env":          a.Env,
		"maxTurns":     a.MaxTurns,
		"auth":         a.Auth,
		"lead":         a.Lead,
		"leadModel":    a.LeadModel,
	}
}

// differingKeys returns the keys in which two arms differ, sorted.
func differingKeys(a, b *experiment.Arm) []string {
	before, after := armKeys(a), armKeys(b)
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if !reflect.DeepEqual(before[key], after[key]) && fmt.Sprint(before[key]) != fmt.Sprint(after[key]) {
			keys = append(keys, key)
		}
	}
	return keys
}

// differingVariables returns the names of the variables that differ between two arms.
func differingVariables(a, b *experiment.Arm) []string {
	names := map[string]bool{}
	for name, value := range a.Env {
		if other, there := b.Env[name]; !there || other != value {
			names[name] = true
		}
	}
	for name := range b.Env {
		if _, there := a.Env[name]; !there {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// declaredKeys lists the keys in which two arms differ and whose content is no piece of its own.
func declaredKeys(a, b *experiment.Arm, keys []string) []experiment.ArmDifference {
	before, after := armKeys(a), armKeys(b)
	var found []experiment.ArmDifference
	for _, key := range keys {
		d := experiment.ArmDifference{What: key, Cause: key}
		switch key {
		case "skills", "instructions", "prompt", "profile": // pieces
			continue
		case "env": // values may be secret
			d.What = "env " + strings.Join(differingVariables(a, b), ", ")
		case "context":
			d.Before, d.After = contextOf(a), contextOf(b)
		case "modelUrl", "files", "mcp", "settings": // paths and addresses of this machine
		case "temperature":
			d.Before, d.After = temperature(a), temperature(b)
		default:
			d.Before, d.After = shownValue(before[key]), shownValue(after[key])
		}
		found = append(found, d)
	}
	return found
}

func contextOf(a *experiment.Arm) string {
	if a.Context == agent.ContextNone {
		return agent.ContextNone
	}
	return agent.ContextProject
}

func temperature(a *experiment.Arm) string {
	if a.Temperature == nil {
		return ""
	}
	return fmt.Sprint(*a.Temperature)
}

func shownValue(value any) string {
	if list, ok := value.([]string); ok {
		return strings.Join(list, "+")
	}
	return fmt.Sprint(value)
}

// pieceDifferences lists the pieces that one of two arms has and the other has not, or in another
// version.
func pieceDifferences(a, b *start) []experiment.ArmDifference {
	before, after := digests(a.pieces), digests(b.pieces)
	names := slices.Sorted(maps.Keys(before))
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, there := before[name]; !there {
			names = append(names, name)
		}
	}
	var found []experiment.ArmDifference
	for _, name := range names {
		if before[name] != after[name] {
			found = append(found, experiment.ArmDifference{
				What:   name,
				Before: before[name],
				After:  after[name],
				Cause:  experiment.CauseArm,
			})
		}
	}
	return found
}

// differingPieces returns the pieces that one of two arms has and the other has not, or in another
// version.
func differingPieces(a, b *start) []treatment.Piece {
	before, after := digests(a.pieces), digests(b.pieces)
	return slices.DeleteFunc(slices.Concat(a.pieces, b.pieces), func(p treatment.Piece) bool {
		return before[shownPiece(p)] == after[shownPiece(p)]
	})
}

// digests returns the versions of pieces by their names.
func digests(pieces []treatment.Piece) map[string]string {
	all := map[string]string{}
	for _, piece := range pieces {
		digest := strings.TrimPrefix(piece.Digest, "sha256:")
		all[shownPiece(piece)] = digest[:min(len(digest), shownDigest)]
	}
	return all
}

// shownDigest is how much of a digest people see.
const shownDigest = 12

// shownPiece names a piece in lists of differences.
func shownPiece(piece treatment.Piece) string {
	if piece.Kind == ledger.PiecePrompt {
		return piece.Kind
	}
	return piece.Kind + " " + piece.Name
}

// causeOf returns what a difference of two requests comes with; empty if nothing declares it.
func causeOf(a, b *start, keys []string, d treatment.Difference) string {
	if a.declared.Agent != b.declared.Agent || a.declared.Model != b.declared.Model ||
		a.planned.AgentVersion != b.planned.AgentVersion {
		return experiment.CauseAgent
	}
	for _, key := range keys {
		switch key {
		case "settings", "files", "mcp", "tools", "lead", "leadModel", "context", "profile", "auth", "effort":
			return key // they may change anything
		case "prompt": // some agents introduce themselves in other words then
			if d.What == treatment.DiffersSystem {
				return key
			}
		case "temperature", "maxTurns":
			if d.What == treatment.DiffersOptions {
				return key
			}
		case "skills", "instructions": // one more entry of a list that both have
			if a.says(d.After) && b.says(d.Before) {
				return key
			}
		case "env":
			if d.What == treatment.DiffersOptions || len(keys) == 1 {
				return key
			}
		}
	}
	return ""
}

// says reports whether the first request of a start holds a text already.
func (s *start) says(text string) bool {
	text = strings.TrimSpace(text)
	holds := func(other string) bool { return strings.Contains(other, text) }
	return slices.ContainsFunc(s.first.System, holds) || slices.ContainsFunc(s.first.Texts, holds)
}
