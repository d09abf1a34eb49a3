package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/fit-eval/fit/internal/patch"
)

// maxShownLines bounds the changed lines of a system prompt that are shown.
const maxShownLines = 200

// How the texts of one label compare.
const (
	promptSame      = "same"
	promptDifferent = "different"
	promptOnlyA     = "only-a"
	promptOnlyB     = "only-b"
)

// ComparePrompts compares system prompts by label and line. Several texts of one label count as one
// text, in order.
func ComparePrompts(a, b []PromptText) PromptComparison {
	c := PromptComparison{
		A:       captured(a),
		B:       captured(b),
		Labels:  []PromptDiff{},
		PrefixA: prefix(a),
		PrefixB: prefix(b),
	}
	textsA, textsB := byLabel(a), byLabel(b)
	seen := map[string]bool{}
	for _, list := range [][]PromptText{a, b} {
		for _, p := range list {
			if !seen[p.Label] {
				seen[p.Label] = true
				c.Labels = append(c.Labels, compareLabel(p.Label, textsA, textsB))
			}
		}
	}
	return c
}

func captured(list []PromptText) string {
	if len(list) == 0 {
		return PromptsNotCaptured
	}
	return PromptsCaptured
}

// prefix hashes what comes before the conversation.
func prefix(list []PromptText) string {
	hash := sha256.New()
	found := false
	for _, p := range list {
		if p.TurnIndex == 0 {
			found = true
			hash.Write([]byte(p.SHA256))
		}
	}
	if !found {
		return ""
	}
	return hex.EncodeToString(hash.Sum(nil))
}

func byLabel(list []PromptText) map[string]string {
	texts := map[string]string{}
	for _, p := range list {
		if before, several := texts[p.Label]; several {
			texts[p.Label] = before + "\n" + p.Content
		} else {
			texts[p.Label] = p.Content
		}
	}
	return texts
}

func compareLabel(label string, textsA, textsB map[string]string) PromptDiff {
	a, inA := textsA[label]
	b, inB := textsB[label]
	d := PromptDiff{
		Label:  label,
		Status: promptDifferent,
		BytesA: len(a),
		BytesB: len(b),
	}
	switch {
	case !inA:
		d.Status = promptOnlyB
	case !inB:
		d.Status = promptOnlyA
	case a == b:
		d.Status = promptSame
		return d
	}
	linesA, linesB := lines(a, inA), lines(b, inB)
	for _, edit := range patch.Edits(linesA, linesB) {
		d.Removed += edit.A1 - edit.A0
		d.Added += edit.B1 - edit.B0
		for _, line := range linesA[edit.A0:edit.A1] {
			d.Lines = append(d.Lines, "-"+line)
		}
		for _, line := range linesB[edit.B0:edit.B1] {
			d.Lines = append(d.Lines, "+"+line)
		}
	}
	d.Lines = d.Lines[:min(len(d.Lines), maxShownLines)]
	return d
}

func lines(text string, there bool) []string {
	if !there {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
