package glob

import (
	"strings"
	"unicode/utf8"
)

// compileAlternative rewrites one pattern without braces for doublestar, or says why it cannot be.
func compileAlternative(source string) (one alternative, reason string) {
	var segments []string
	// globstars are the indices of the ** segments; two in a row count once.
	var globstars []int
	for text := range strings.SplitSeq(source, "/") {
		switch text {
		case "":
			return one, "an empty segment (a leading, trailing or doubled slash)"
		case ".", "..":
			return one, "a segment that is . or .."
		case "**":
			if len(globstars) == 0 || globstars[len(globstars)-1] != len(segments)-1 {
				globstars = append(globstars, len(segments))
				segments = append(segments, text)
			}
			continue
		}
		segment, counts, reason := compileSegment(text)
		if reason != "" {
			return one, reason
		}
		one.countsCharacters = one.countsCharacters || counts
		segments = append(segments, segment)
	}
	if len(globstars) > maxGlobstars {
		return one, "too many ** segments"
	}
	for i := 2; i < len(globstars); i++ {
		if globstars[i]-globstars[i-1] != globstars[1]-globstars[0] {
			return one, "three or more ** with different numbers of segments between them"
		}
	}
	// In doublestar a/** matches a itself; the reference wants something below it.
	if segments[len(segments)-1] == "**" {
		segments = append(segments, "*")
	}
	one.pattern = strings.Join(segments, "/")
	return one, ""
}

// compileSegment rewrites one segment: runs of stars become one star, literals that doublestar
// would read as syntax are escaped.
func compileSegment(text string) (segment string, countsCharacters bool, reason string) {
	if strings.Contains(text, `\`) {
		segment, reason = compileEscaped(text)
		return segment, false, reason
	}
	var out strings.Builder
	for i := 0; i < len(text); {
		if strings.IndexByte("?*+@!", text[i]) >= 0 && i+1 < len(text) && text[i+1] == '(' {
			return "", false, "an extended glob such as @(a|b)"
		}
		switch text[i] {
		case '*':
			for i < len(text) && text[i] == '*' {
				if i+1 < len(text) && text[i+1] == '(' {
					return "", false, "an extended glob such as @(a|b)"
				}
				i++
			}
			out.WriteByte('*')
		case '?':
			countsCharacters = true
			out.WriteByte('?')
			i++
		case '[':
			class, length, reason := compileClass(text[i:])
			if reason != "" {
				return "", false, reason
			}
			countsCharacters = true
			out.WriteString(class)
			i += length
		case ']', '{', '}':
			out.WriteByte('\\')
			out.WriteByte(text[i])
			i++
		default:
			out.WriteByte(text[i])
			i++
		}
	}
	return out.String(), countsCharacters, ""
}

// compileEscaped rewrites a segment that has a backslash. The reference is only reliable where such
// a segment is literal throughout.
func compileEscaped(text string) (segment, reason string) {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if i++; i == len(text) {
				return "", "a backslash at the end of a segment"
			}
		case '*', '?', '[', '(', ')':
			return "", "a backslash and a wildcard in one segment"
		}
		if text[i] < utf8.RuneSelf {
			out.WriteByte('\\')
		}
		out.WriteByte(text[i])
	}
	return out.String(), ""
}

// compileClass reads the class that text starts with and returns it with its length.
func compileClass(text string) (class string, length int, reason string) {
	end := strings.IndexByte(text, ']')
	if end < 0 {
		return "", 0, "a class that is not closed"
	}
	body := text[1:end]
	negated := strings.HasPrefix(body, "!") || strings.HasPrefix(body, "^")
	if negated {
		body = body[1:]
	}
	switch {
	case body == "":
		return "", 0, "an empty class, or one that holds a closing bracket"
	case strings.Contains(body, "["):
		return "", 0, "a bracket inside a class, such as [[:alpha:]]"
	}
	if reason := checkClassBody([]rune(body)); reason != "" {
		return "", 0, reason
	}
	return text[:end+1], end + 1, ""
}

func checkClassBody(body []rune) (reason string) {
	for i := 0; i < len(body); i++ {
		if body[i] > 0xFFFF {
			return "a class with a character beyond U+FFFF"
		}
		if body[i] == '-' {
			return "a stray hyphen in a class"
		}
		if i+2 < len(body) && body[i+1] == '-' {
			switch low, high := body[i], body[i+2]; {
			case high == '-' || high > 0xFFFF:
				return "a stray hyphen in a class"
			case low > high:
				return "a class with a reversed range"
			}
			i += 2
		}
	}
	return ""
}
