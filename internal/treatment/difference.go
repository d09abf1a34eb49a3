package treatment

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/ledger"
)

// What differs between two starts, beside the agent.
const (
	DiffersModel    = "model"
	DiffersTools    = "tools"
	DiffersSystem   = "system"
	DiffersMessages = "messages"
	DiffersOptions  = "options"
)

// Difference is one thing in which two arms' first requests differ.
type Difference struct {
	What   string `json:"what"` // agent, model, tools, system, messages, options
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Declared says that it is the content of a piece that one of the arms has, or comes with it.
	Declared bool `json:"declared,omitempty"`
}

// maxExcerpt bounds the texts of a Difference.
const maxExcerpt = 1000

// Differences compares two starts. noise is a second start of the first arm, or nil: in what the
// two differ, any two starts do. pieces are those of both arms; what both have declares nothing. A
// difference in model, tools or options that the arms declare by themselves is the caller's to
// recognise.
func Differences(a, b, noise *Start, pieces []Piece) []Difference {
	if noise == nil {
		noise = a
	}
	c := comparison{pieces: unshared(pieces)}
	c.plain(DiffersModel, a.Model, b.Model)
	c.tools(a, b, noise)
	c.texts(DiffersSystem, a.System, b.System, noise.System)
	c.texts(DiffersMessages, a.Texts, b.Texts, noise.Texts)
	c.options(a.Options, b.Options, noise.Options)
	return c.found
}

// unshared returns the pieces of which there is only one.
func unshared(pieces []Piece) []Piece {
	key := func(p *Piece) string { return p.Kind + "\x00" + p.Name + "\x00" + p.Path + "\x00" + p.Digest }
	count := map[string]int{}
	for i := range pieces {
		count[key(&pieces[i])]++
	}
	return slices.DeleteFunc(slices.Clone(pieces), func(p Piece) bool { return count[key(&p)] > 1 })
}

// comparison collects differences.
type comparison struct {
	pieces []Piece
	found  []Difference
}

func (c *comparison) add(d Difference) {
	d.Before, d.After = display.CutBytes(d.Before, maxExcerpt), display.CutBytes(d.After, maxExcerpt)
	c.found = append(c.found, d)
}

func (c *comparison) plain(what, before, after string) {
	if before != after {
		c.add(Difference{What: what, Before: before, After: after})
	}
}

func (c *comparison) options(a, b, noise map[string]string) {
	names := slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if a[name] == b[name] || a[name] != noise[name] {
			continue
		}
		c.add(Difference{What: DiffersOptions, Before: setting(a, name), After: setting(b, name)})
	}
}

func setting(options map[string]string, name string) string {
	if value, ok := options[name]; ok {
		return name + "=" + value
	}
	return ""
}

func (c *comparison) tools(a, b, noise *Start) {
	before, after, again := definitions(a), definitions(b), definitions(noise)
	names := slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		was, is := before[name], after[name]
		if was == is || was != again[name] {
			continue
		}
		d := Difference{What: DiffersTools, Declared: c.declaredTool(name, was, is)}
		was, is = apart(was, is)
		if before[name] != "" {
			d.Before = strings.TrimSuffix(name+": "+was, ": ")
		}
		if after[name] != "" {
			d.After = strings.TrimSuffix(name+": "+is, ": ")
		}
		c.add(d)
	}
}

func definitions(s *Start) map[string]string {
	all := map[string]string{}
	for _, tool := range s.Tools {
		all[tool.Name] += tool.Definition
	}
	return all
}

// apart returns two texts from where they differ on; nothing of one without the other.
func apart(a, b string) (string, string) {
	if a == "" || b == "" {
		return "", ""
	}
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	same = max(0, same-40) // some of what is before it shows what it is about
	return strings.ToValidUTF8(a[same:], ""), strings.ToValidUTF8(b[same:], "")
}

// declaredTool reports whether a tool differs because of a piece: it is one of a server's, it names
// a skill, or it is the one that opens skills or starts sub-agents.
func (c *comparison) declaredTool(name, was, is string) bool {
	lower := strings.ToLower(name)
	for i := range c.pieces {
		p := &c.pieces[i]
		switch {
		case p.Kind == ledger.PieceServer && isToolOf(name, p.Name),
			p.Kind == ledger.PieceSkill && strings.Contains(lower, "skill"),
			p.Kind == ledger.PieceAgent && strings.Contains(lower, "agent"),
			p.mentioned(was) != p.mentioned(is):
			return true
		}
	}
	return false
}

// mentioned reports whether a text names the piece, or the directory that it is in.
func (p *Piece) mentioned(text string) bool {
	for _, name := range []string{p.Name, p.Path, path.Dir(path.Dir(p.Path))} {
		if len(name) < 2 {
			continue
		}
		for at := 0; ; {
			found := strings.Index(text[at:], name)
			if found < 0 {
				break
			}
			start, end := at+found, at+found+len(name)
			if (start == 0 || !isNameByte(text[start-1])) && (end == len(text) || !isNameByte(text[end])) {
				return true
			}
			at = start + 1
		}
	}
	return false
}

func isNameByte(c byte) bool { return c == '-' || c == '_' || isWordRune(rune(c)) }
