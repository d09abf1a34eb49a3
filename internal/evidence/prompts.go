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
	PromptSame      = "same"
	promptDifferent = "different"
	promptOnlyA     = "only-a"
	promptOnlyB     = "only-b"
)

// PromptComparison compares the system prompts of two attempts by label and line.
type PromptComparison struct {
	// A and B are captured or not captured.
	A      string       `json:"a"`
	B      string       `json:"b"`
	Labels []PromptDiff `json:"labels"`
	// PrefixA and PrefixB are the SHA-256 of everything before the conversation. If they are equal,
	// a provider's cache can serve both.
	PrefixA string `json:"prefixA,omitempty"`
	PrefixB string `json:"prefixB,omitempty"`
}

// Whether system prompts were captured.
const (
	PromptsCaptured    = "captured"
	PromptsNotCaptured = "not captured"
)

// PromptDiff compares the texts of one label.
type PromptDiff struct {
	Label   string `json:"label"`
	Status  string `json:"status"` // same, different, only-a, only-b
	BytesA  int    `json:"bytesA"`
	BytesB  int    `json:"bytesB"`
	Added   int    `json:"added"`   // lines that only B has
	Removed int    `json:"removed"` // lines that only A has
	// Lines are the changed lines, with + or - in front, up to a limit.
	Lines []string `json:"lines,omitempty"`
}

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
		d.Status = PromptSame
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
