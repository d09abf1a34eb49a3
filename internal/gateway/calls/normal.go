package calls

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"maps"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// Normaliser removes from a request what differs from run to run. It remembers what it has seen,
// because most of a request repeats the one before. It is not safe for concurrent use.
type Normaliser struct {
	dirs []Directory
	sums map[Sum]Sum
}

// Directory is one that differs from run to run, under a name that does not.
type Directory struct{ Name, Path string }

// NewNormaliser returns a Normaliser for a participant's directories, by purpose.
func NewNormaliser(dirs map[string]string) *Normaliser {
	n := &Normaliser{dirs: Directories(dirs), sums: map[Sum]Sum{}}
	for _, dir := range n.dirs {
		if strings.Count(dir.Path, "/") > 1 { // what is shorter is found in other words
			n.dirs = append(n.dirs, Directory{dir.Name, dashed(dir.Path)})
		}
	}
	return n
}

// dashed returns a directory in the form in which clients name other directories after it.
func dashed(path string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, path)
}

// Directories puts directories before those that contain them.
func Directories(dirs map[string]string) []Directory {
	var list []Directory
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		if len(dirs[name]) > 1 { // the root is in everything
			list = append(list, Directory{name, strings.TrimSuffix(dirs[name], "/")})
		}
	}
	slices.SortStableFunc(list, func(a, b Directory) int { return cmp.Compare(len(b.Path), len(a.Path)) })
	return list
}

// replacement is a form, and what is put in its place.
type replacement struct {
	form *lazyregexp.Regexp
	with string
}

// varying lists the forms of what differs from run to run, and their replacements. The order
// matters: longer forms come first.
var varying = []replacement{
	// a client's account of itself, in any order
	{lazyregexp.New(`"client_metadata":\{(?:"(?:[^"\\]|\\.)*":"(?:[^"\\]|\\.)*",?)*\}`), `"client_metadata":{}`},
	// 2026-11-15T20:31:01.123Z, 2026-11-15 20:31, 2026-11-15, 2026/11/15
	{lazyregexp.New(`\b20\d\d[-/][01]\d[-/][0-3]\d(?:[T ,]+[0-2]?\d:[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?)?(?: ?Z\b|[+-]\d\d:?\d\d\b)?`), "{date}"},
	// Sunday, November 15, 2026 at 08:31:01 PM UTC; 15 Nov 2026; 11/15/2026
	{lazyregexp.New(`(?i)\b(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? +)?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* +[0-3]?\d(?:st|nd|rd|th)?,? +(?:\d\d:\d\d:\d\d +(?:[a-z]+ +)?)?20\d\d\b`), "{date}"},
	{lazyregexp.New(`(?i)\b[0-3]?\d +(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* +20\d\d\b`), "{date}"},
	{lazyregexp.New(`\b[01]?\d/[0-3]?\d/20\d\d\b`), "{date}"},
	{lazyregexp.New(`(?i)(?:\b[a-z]+_|\b)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "{id}"},
	{lazyregexp.New(`\b(?:toolu|srvtoolu|call|msg|resp|rs|fc|ctc|req|item|chatcmpl|session|thread|run|user|turn)[_-][A-Za-z0-9_-]*\d[A-Za-z0-9_-]*`), "{id}"},
	{lazyregexp.New(`(?i)\b[0-9a-f]{16,}\b`), "{id}"},
	{lazyregexp.New(`\b1[5-9]\d{8}(?:\d{3}|\.\d+)?\b`), "{time}"},
	{lazyregexp.New(`/(?:private/)?(?:var/)?tmp/[^/\s"'\\:;,)\]}<>` + "`" + `]+`), "{tmp}"},
	{lazyregexp.New(`\b(?:127\.0\.0\.1|localhost):\d{2,5}\b`), "{address}"},
}

// measured lists what differs from run to run in what tools print. In what people write, a duration
// or a time of day is a part of what they say.
var measured = []replacement{
	{lazyregexp.New(`(?i)\b[0-2]?\d:[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?: ?[ap]m\b)?(?: (?:utc|gmt)\b)?`), "{clock}"},
	{lazyregexp.New(`\b\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|seconds)\b`), "{duration}"},
	{lazyregexp.New(`\b(?i:pid)[ =:]+\d+\b`), "{pid}"},
	{lazyregexp.New(`\bChunk ID: [0-9a-f]+\b`), "{chunk}"}, // of a command's output
}

// Text returns a text without what differs from run to run.
func (n *Normaliser) Text(text []byte) []byte {
	for _, dir := range n.dirs {
		text = ReplacePath(text, dir.Path, "{"+dir.Name+"}")
	}
	return replaced(text, varying)
}

// Chunk returns a chunk without what differs from run to run.
func (n *Normaliser) Chunk(chunk *Chunk) []byte {
	text := n.Text(chunk.Text())
	if chunk.hasResults() {
		text = replaced(text, measured)
	}
	return text
}

func replaced(text []byte, list []replacement) []byte {
	for _, v := range list {
		text = v.form.Get().ReplaceAll(text, []byte(v.with))
	}
	return text
}

// hasResults reports whether a chunk is a message with the results of tools, in any protocol.
func (c *Chunk) hasResults() bool {
	switch c.Member {
	case "messages", "input", "contents":
		return toolResult.Get().Match(c.Value)
	}
	return false
}

var toolResult = lazyregexp.New(
	`"type": ?"(?:tool_result|[a-z_]+_output)"|"role": ?"(?:tool|function)"|"functionResponse"`)

// Sum names the content of a chunk without what differs from run to run.
func (n *Normaliser) Sum(chunk *Chunk) Sum {
	sum, known := n.sums[chunk.Sum()]
	if !known {
		sum = sha256.Sum256(n.Chunk(chunk))
		n.sums[chunk.Sum()] = sum
	}
	return sum
}

// ReplacePath replaces a path where it ends, or where a path in it follows.
func ReplacePath(text []byte, path, with string) []byte {
	if path == "" || path == with || !bytes.Contains(text, []byte(path)) {
		return text
	}
	var out []byte
	for {
		at := bytes.Index(text, []byte(path))
		if at < 0 {
			return append(out, text...)
		}
		end := at + len(path)
		if end < len(text) && isNameByte(text[end]) { // another path that begins alike
			out = append(out, text[:end]...)
		} else {
			out = append(append(out, text[:at]...), with...)
		}
		text = text[end:]
	}
}

func isNameByte(c byte) bool {
	return c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
