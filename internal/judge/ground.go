package judge

import (
	"crypto/sha256"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// shortestQuote is how many characters of a line a quote needs, unless it is the whole line.
const shortestQuote = 8

// numbered is a line of a file that can be cited, with its blanks collapsed.
type numbered struct {
	number int
	text   string
}

// section is a part of what a judge is shown, with the lines that can be cited.
type section struct {
	text           string
	sum            [sha256.Size]byte     // of the text
	added, removed map[string][]numbered // by path, ascending
	// other are the other lines, with their blanks collapsed, by address: verify, trace:LINE,
	// req:ID.
	other map[string][]string
}

// shown is everything that a judge was shown.
type shown []*section

// holds reports whether an evidence item, ADDRESS "QUOTE", resolves in what was shown and its quote
// is there. Some models escape the quotation marks in a quote once more than JSON asks for.
func (s shown) holds(item string) bool {
	address, quote, ok := parseItem(item)
	return ok && (s.hold(address, quote) ||
		strings.Contains(quote, `\"`) && s.hold(address, strings.ReplaceAll(quote, `\"`, `"`)))
}

func (s shown) hold(address, quote string) bool {
	at, isPlace := linesOf(address)
	return slices.ContainsFunc(s, func(part *section) bool {
		return quoted(part.other[address], quote) || isPlace && quoted(part.lines(at), quote)
	})
}

// parseItem splits an evidence item.
func parseItem(item string) (address, quote string, ok bool) {
	item = strings.TrimSpace(item)
	address, rest, found := strings.Cut(item, ` "`)
	if !found || !strings.HasSuffix(rest, `"`) {
		return "", "", false
	}
	return strings.TrimSpace(address), collapse(strings.TrimSuffix(rest, `"`)), true
}

// lineRange is a range of lines of a file: file:12, file:12-14, or file:-11 for a removed one.
type lineRange struct {
	path     string
	from, to int
	removed  bool
}

func linesOf(address string) (lineRange, bool) {
	colon := strings.LastIndexByte(address, ':')
	if colon < 0 {
		return lineRange{}, false
	}
	first, removed := strings.CutPrefix(address[colon+1:], "-")
	last := first
	if from, to, isRange := strings.Cut(first, "-"); isRange && !removed {
		first, last = from, to
	}
	from, okFrom := lineNumber(first)
	to, okTo := lineNumber(last)
	return lineRange{address[:colon], from, to, removed}, okFrom && okTo
}

func (s *section) lines(at lineRange) []string {
	if at.removed {
		return between(s.removed[at.path], at.from, at.to)
	}
	return between(s.added[at.path], at.from, at.to)
}

func lineNumber(text string) (int, bool) {
	if text == "" || len(text) > 9 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n > 0
}

func between(lines []numbered, from, to int) []string {
	start := sort.Search(len(lines), func(i int) bool { return lines[i].number >= from })
	var found []string
	for _, line := range lines[start:] {
		if line.number > to {
			break
		}
		found = append(found, line.text)
	}
	return found
}

// quoted reports whether lines contain a quote, with the blanks of both collapsed: the whole of
// one, or at least shortestQuote characters of them.
func quoted(lines []string, quote string) bool {
	if len(lines) == 0 || quote == "" {
		return false
	}
	return slices.Contains(lines, quote) || utf8.RuneCountInString(quote) >= shortestQuote &&
		strings.Contains(collapse(strings.Join(lines, " ")), quote)
}

// collapse makes every run of blanks one space. Most texts are so already.
func collapse(text string) string {
	blank := true // a space here would be the second, or the first of the text
	for i := range len(text) {
		c := text[i]
		if c >= utf8.RuneSelf || c < ' ' || c == ' ' && blank {
			return strings.Join(strings.Fields(text), " ")
		}
		blank = c == ' '
	}
	return strings.TrimSuffix(text, " ")
}
