package profile

import (
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

var (
	protocolHeading = lazyregexp.New(`(?i)^##[ \t]+session protocol[ \t]*$`)
	sectionHeading  = lazyregexp.New(`^#{1,2}([ \t]|$)`)
	fenceLine       = lazyregexp.New("^ {0,3}(`{3,}|~{3,})(.*)$")
)

// hoistProtocol takes the first "Session Protocol" section out of a profile's body: it moves from
// the persona to the session protocol. The section ends at the next heading of level one or two;
// a line inside a code fence is not a heading.
func hoistProtocol(body string) (persona, protocol string) {
	lines := strings.Split(body, "\n")
	start, end := -1, len(lines)
	var fence fenceState
	for i, line := range lines {
		if fence.inside(line) {
			continue
		}
		if start < 0 && protocolHeading.MatchString(line) {
			start = i
		} else if start >= 0 && sectionHeading.MatchString(line) {
			end = i
			break
		}
	}
	if start < 0 {
		return strings.TrimSpace(body), ""
	}
	protocol = strings.TrimSpace(strings.Join(lines[start+1:end], "\n"))
	before := strings.TrimSpace(strings.Join(lines[:start], "\n"))
	after := strings.TrimSpace(strings.Join(lines[end:], "\n"))
	return Join(before, after), protocol
}

// fenceState follows code fences from line to line.
type fenceState struct{ open string }

// inside reports whether a line belongs to a code fence, its first and last line included.
func (f *fenceState) inside(line string) bool {
	match := fenceLine.FindStringSubmatch(line)
	switch {
	case f.open == "" && match == nil:
		return false
	case f.open == "":
		if match[1][0] == '`' && strings.Contains(match[2], "`") {
			return false // inline code, not a fence
		}
		f.open = match[1]
	case match != nil && match[1][0] == f.open[0] && len(match[1]) >= len(f.open) && strings.TrimSpace(match[2]) == "":
		f.open = ""
	}
	return true
}

// Join joins the blocks that are not empty with one blank line.
func Join(blocks ...string) string {
	var full []string
	for _, block := range blocks {
		if block = strings.TrimSpace(block); block != "" {
			full = append(full, block)
		}
	}
	return strings.Join(full, "\n\n")
}
