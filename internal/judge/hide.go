package judge

import (
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/session"
)

// The replacements for what would reveal who did the work.
const (
	hiddenName = "[hidden]"
	hiddenPath = "[path]"
)

// shortestName is the length from which a name is looked for; shorter ones are ordinary words.
const shortestName = 4

// hider takes names out of texts.
type hider struct {
	names []string // in lower case, longest first
	dirs  []string // longest first
}

// newHider takes ids of agents and models, and directories, which begin with a slash. If the vendor
// of a model is known, it is hidden too, and so is the first word of the id, which agents call
// themselves; the first word of any other id may be an ordinary one.
func newHider(hide []string) *hider {
	h := &hider{}
	add := func(name string, shortest int) {
		if len(name) >= shortest && !slices.Contains(h.names, name) {
			h.names = append(h.names, name)
		}
	}
	for _, one := range hide {
		if strings.HasPrefix(one, "/") {
			if dir := strings.TrimRight(one, "/"); dir != "" {
				h.dirs = append(h.dirs, dir)
			}
			continue
		}
		name := lowerASCII(strings.TrimSpace(one))
		add(name, shortestName)
		add(strings.ReplaceAll(name, "-", " "), shortestName)
		if family := familyOf(name); family != "" {
			word, _, _ := strings.Cut(name[strings.LastIndexByte(name, '/')+1:], "-")
			add(word, 3)
			add(family, shortestName)
		}
	}
	longestFirst := func(a, b string) int { return len(b) - len(a) }
	slices.SortStableFunc(h.names, longestFirst)
	slices.SortStableFunc(h.dirs, longestFirst)
	return h
}

// text hides names, directories and signatures in a text. It never changes the number of lines.
func (h *hider) text(text string) string {
	for _, dir := range h.dirs {
		text = strings.ReplaceAll(text, dir, ".")
	}
	lower := lowerASCII(text)
	for _, name := range h.names {
		if hidden := replaceWord(text, lower, name, hiddenName); hidden != text {
			text, lower = hidden, lowerASCII(hidden)
		}
	}
	for _, mark := range signatures {
		if strings.Contains(lower, mark) {
			text = hideAfter(text, mark)
			lower = lowerASCII(text)
		}
	}
	return text
}

// signatures begin the part of a line in which agents name themselves.
var signatures = []string{"co-authored-by:", "generated with ["}

// privatePath matches a path of a private machine, up to the last of its names.
var privatePath = lazyregexp.New(`/(?:home|root|tmp|var|Users|private|workspace)(?:/[\w.@+~-]+)*/`)

// paths hides directories of the machine that the work was done on.
func (h *hider) paths(text string) string {
	if !strings.Contains(text, "/") {
		return text
	}
	return privatePath.Get().ReplaceAllString(text, hiddenPath+"/")
}

// replaceWord replaces a word where it is not a part of a longer one. It is looked for in in, which
// is the text or the text in lower case.
func replaceWord(text, in, word, by string) string {
	var out strings.Builder
	at := 0
	for {
		found := strings.Index(in[at:], word)
		if found < 0 {
			break
		}
		start, end := at+found, at+found+len(word)
		out.WriteString(text[at:start])
		if start > 0 && isWord(in[start-1]) || end < len(in) && isWord(in[end]) {
			out.WriteString(text[start:end])
		} else {
			out.WriteString(by)
		}
		at = end
	}
	if at == 0 {
		return text
	}
	return out.String() + text[at:]
}

// canonicalTools replaces the agents' names of tools, if they cannot be ordinary words: those with
// an underscore or a capital inside.
func canonicalTools(text string) string {
	var out strings.Builder
	kept := 0
	for start := 0; start < len(text); {
		if !isWord(text[start]) {
			start++
			continue
		}
		end, odd := start, false
		for ; end < len(text) && isWord(text[end]); end++ {
			odd = odd || text[end] == '_' || end > start && 'A' <= text[end] && text[end] <= 'Z'
		}
		if odd {
			switch canonical := session.CanonicalTool(text[start:end]); canonical {
			case session.ToolOther, session.ToolWeb, session.ToolPlan: // any word may be one of the last two
			default:
				out.WriteString(text[kept:start] + canonical)
				kept = end
			}
		}
		start = end
	}
	return out.String() + text[kept:]
}

func hideAfter(text, mark string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if at := strings.Index(lowerASCII(line), mark); at >= 0 {
			lines[i] = line[:at] + hiddenName
		}
	}
	return strings.Join(lines, "\n")
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

// lowerASCII keeps every byte in its place, which strings.ToLower does not.
func lowerASCII(text string) string {
	lower := []byte(text)
	for i, c := range lower {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return string(lower)
}
