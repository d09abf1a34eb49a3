package patch

import (
	"strconv"
	"strings"
)

// maxNumber bounds line numbers, so that sums of them stay numbers.
const maxNumber = 1 << 30

// hunk reads a hunk with its lines.
func (p *parser) hunk(header string) {
	hunk, ok := parseRanges(header)
	if !ok {
		p.problem("a hunk without ranges")
		return
	}
	old, new := hunk.OldStart, hunk.NewStart
	oldLeft, newLeft := hunk.OldCount, hunk.NewCount
	for oldLeft > 0 || newLeft > 0 {
		if !p.next() {
			p.problem("a hunk that ends too early")
			break
		}
		op := Context // an editor may have dropped the blank of an empty context line
		text := p.line
		if text != "" {
			op, text = text[0], text[1:]
		}
		line := Line{Op: op, Text: text}
		switch {
		case op == Context && oldLeft > 0 && newLeft > 0:
			line.Old, line.New = old, new
		case op == Plus && newLeft > 0:
			line.New = new
		case op == Minus && oldLeft > 0:
			line.Old = old
		case op == '\\':
			p.noNewline(&hunk)
			continue
		default:
			p.problem("a hunk that ends too early")
			p.keep(hunk)
			p.again = true
			return
		}
		if line.Old > 0 {
			old, oldLeft = old+1, oldLeft-1
		}
		if line.New > 0 {
			new, newLeft = new+1, newLeft-1
		}
		hunk.Lines = append(hunk.Lines, line)
	}
	if strings.HasPrefix(p.rest, `\ `) {
		p.next()
		p.noNewline(&hunk)
	}
	p.keep(hunk)
}

func (p *parser) keep(hunk Hunk) { p.file.Hunks = append(p.file.Hunks, hunk) }

// noNewline notes that the line before has no line break.
func (p *parser) noNewline(hunk *Hunk) {
	if last := len(hunk.Lines) - 1; last >= 0 {
		hunk.Lines[last].NoNewline = true
	}
}

// parseRanges reads "@@ -1,2 +3,4 @@ where it is".
func parseRanges(header string) (Hunk, bool) {
	rest, ok := strings.CutPrefix(header, "@@ -")
	if !ok {
		return Hunk{}, false
	}
	old, rest, ok := strings.Cut(rest, " +")
	if !ok {
		return Hunk{}, false
	}
	new, _, ok := strings.Cut(rest, " @@")
	if !ok {
		return Hunk{}, false
	}
	var h Hunk
	var okOld, okNew bool
	h.OldStart, h.OldCount, okOld = parseRange(old)
	h.NewStart, h.NewCount, okNew = parseRange(new)
	return h, okOld && okNew
}

func parseRange(text string) (start, count int, ok bool) {
	from, length, hasLength := strings.Cut(text, ",")
	start, ok = parseNumber(from)
	count = 1
	if hasLength {
		var okLength bool
		count, okLength = parseNumber(length)
		ok = ok && okLength
	}
	// A side with lines counts them from 1.
	return start, count, ok && (count == 0 || start > 0)
}

func parseNumber(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	return int(n), err == nil && n <= maxNumber
}
