package report

import (
	"fmt"
	"slices"
	"strings"
)

// Signing says in numbers for which records a signature proves who made them.
type Signing struct {
	Records int `json:"records"`
	Signed  int `json:"signed"`
	// By names the keys.
	By []string `json:"by,omitempty"`
	// Own is the reader's, whom no stored report knows.
	Own string `json:"-"`
	// Gone says that a signature is missing which was there; claims are withheld then.
	Gone string `json:"gone,omitempty"`
}

// Text says what is signed; empty where nobody looked.
func (s *Signing) Text() string {
	if s == nil || s.Records == 0 {
		return ""
	}
	var keys []string
	for _, key := range s.By {
		if key == s.Own {
			keys = append(keys, "your key")
			continue
		}
		keys = append(keys, "key "+key[:min(8, len(key))])
	}
	by := ""
	if len(keys) > 0 {
		by = " by " + strings.Join(keys, " and ")
	}
	return fmt.Sprintf("signed%s: %d of %s", by, s.Signed, Count(s.Records, "record"))
}

// unsigned says that a signature is gone.
func unsigned(basis *Basis) []string {
	return basis.each(func(g *Group) string {
		if g.Signed == nil {
			return ""
		}
		return g.Signed.Gone
	})
}

// FirstLines are what readers see right below the answer about groups: what is signed, once where
// they have one ledger, what the controls showed, and how many experiments there were before.
func FirstLines(groups ...*Group) []string {
	var lines []string
	for i, g := range groups {
		before := slices.IndexFunc(groups, func(other *Group) bool { return other.Signed == g.Signed })
		if text := g.Signed.Text(); text != "" && before == i {
			lines = append(lines, text)
		}
	}
	if len(groups) > 1 && len(lines) == len(groups) {
		for i, g := range groups {
			lines[i] = g.Name + ": " + lines[i]
		}
	}
	var shown []string
	for _, g := range groups {
		for _, c := range g.controls {
			if !slices.Contains(shown, c.Text) {
				shown = append(shown, c.Text)
			}
		}
	}
	if len(shown) > 0 {
		lines = append(lines, "controls: "+strings.Join(shown, "; "))
	}
	for _, g := range groups {
		if g.Number != "" && !slices.Contains(lines, g.Number) {
			lines = append(lines, g.Number)
		}
	}
	return lines
}
