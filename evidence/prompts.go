package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// maxDiffLines bounds the lines of a system prompt that are compared one by one, and
	// maxShownLines those that are shown.
	maxDiffLines  = 4000
	maxShownLines = 200
)

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

// prefix hashes what stands before the conversation.
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
	for _, line := range diffLines(linesA, linesB) {
		if line[0] == '+' {
			d.Added++
		} else {
			d.Removed++
		}
		if len(d.Lines) < maxShownLines {
			d.Lines = append(d.Lines, line)
		}
	}
	return d
}

func lines(text string, there bool) []string {
	if !there {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// diffLines returns the lines that only one of two texts has, with + or - in front. It takes the
// longest common subsequence; of texts with very many lines it compares how often each line occurs.
func diffLines(a, b []string) []string {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) > maxDiffLines || len(b) > maxDiffLines {
		return countLines(a, b)
	}
	common := make([][]uint16, len(a)+1)
	for i := range common {
		common[i] = make([]uint16, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var out []string
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			out = append(out, "-"+a[i])
			i++
		default:
			out = append(out, "+"+b[j])
			j++
		}
	}
	return out
}

func countLines(a, b []string) []string {
	count := map[string]int{}
	for _, line := range b {
		count[line]++
	}
	var out []string
	for _, line := range a {
		if count[line]--; count[line] < 0 {
			out = append(out, "-"+line)
		}
	}
	for _, line := range b {
		if count[line] > 0 {
			count[line]--
			out = append(out, "+"+line)
		}
	}
	return out
}
