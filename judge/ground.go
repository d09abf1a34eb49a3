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

// numbered is a line of a file that can be cited.
type numbered struct {
	number int
	text   string
}

// section is a part of what a judge is shown, with the lines that can be cited.
type section struct {
	text           string
	sum            [sha256.Size]byte     // of the text
	added, removed map[string][]numbered // by path, ascending
	other          map[string][]string   // by address: verify, trace:LINE, req:ID
}

// shown is everything that a judge was shown.
type shown []*section

// holds reports whether an evidence item, ADDRESS "QUOTE", resolves in what was shown and its quote
// stands there. Some models escape the quotation marks in a quote once more than JSON asks for.
func (s shown) holds(item string) bool {
	address, quote, ok := parseItem(item)
	return ok && (s.hold(address, quote) || s.hold(address, strings.ReplaceAll(quote, `\"`, `"`)))
}

func (s shown) hold(address, quote string) bool {
	return slices.ContainsFunc(s, func(part *section) bool {
		return quoted(part.other[address], quote) || quoted(part.fileLines(address), quote)
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

// fileLines resolves file:12, file:12-14 and file:-11.
func (s *section) fileLines(address string) []string {
	colon := strings.LastIndexByte(address, ':')
	if colon < 0 {
		return nil
	}
	path, place := address[:colon], address[colon+1:]
	if number, removed := strings.CutPrefix(place, "-"); removed {
		at, ok := lineNumber(number)
		if !ok {
			return nil
		}
		return between(s.removed[path], at, at)
	}
	first, last, isRange := strings.Cut(place, "-")
	if !isRange {
		last = first
	}
	from, okFrom := lineNumber(first)
	to, okTo := lineNumber(last)
	if !okFrom || !okTo {
		return nil
	}
	return between(s.added[path], from, to)
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

// quoted reports whether a quote, whose blanks are collapsed, stands in lines: the whole of one, or
// at least shortestQuote characters of them.
func quoted(lines []string, quote string) bool {
	if len(lines) == 0 || quote == "" {
		return false
	}
	if slices.ContainsFunc(lines, func(line string) bool { return collapse(line) == quote }) {
		return true
	}
	return utf8.RuneCountInString(quote) >= shortestQuote &&
		strings.Contains(collapse(strings.Join(lines, "\n")), quote)
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
