package glob

import "strings"

// expandBraces returns the patterns that the brace groups of source stand for, or the reason why
// they are not supported.
func expandBraces(source string) (patterns []string, reason string) {
	if !strings.ContainsAny(source, "{}") {
		return []string{source}, ""
	}
	if strings.Contains(source, `\`) {
		if escapesEveryBrace(source) {
			return []string{source}, ""
		}
		return nil, "a backslash together with braces"
	}
	if reason := checkBraces(source); reason != "" {
		return nil, reason
	}
	return expandChecked(source)
}

// escapesEveryBrace reports whether source has no brace but escaped ones. A balanced pair is never
// accepted, because minimatch looks for pairs before it looks for backslashes.
func escapesEveryBrace(source string) bool {
	for i := 0; i < len(source); i++ {
		switch source[i] {
		case '\\':
			i++
		case '{', '}':
			return false
		}
	}
	open := strings.IndexByte(source, '{')
	return open < 0 || strings.IndexByte(source[open:], '}') < 0
}

// checkBraces refuses what the reference treats specially: groups that are unbalanced or without
// comma (ranges are such groups), shell variables, and braces or commas inside a class, which the
// reference does not see as a class at this stage.
func checkBraces(source string) (reason string) {
	var commas []int
	inClass := false
	for i := 0; i < len(source); i++ {
		switch c := source[i]; {
		case c == '[':
			inClass = true
		case c == ']':
			inClass = false
		case inClass && (c == '{' || c == '}' || c == ','):
			return "braces or commas inside a class"
		case c == '{' && i > 0 && source[i-1] == '$':
			return "a brace group after a dollar sign"
		case c == '{':
			commas = append(commas, 0)
		case c == ',' && len(commas) > 0:
			commas[len(commas)-1]++
		case c == '}' && len(commas) == 0:
			return "unbalanced braces"
		case c == '}':
			if commas[len(commas)-1] == 0 {
				return "a brace group without comma"
			}
			commas = commas[:len(commas)-1]
		}
	}
	if len(commas) > 0 {
		return "unbalanced braces"
	}
	return ""
}

// expandChecked expands a pattern whose braces are balanced. The first group is replaced with each
// of its alternatives until no group is left.
func expandChecked(source string) (patterns []string, reason string) {
	queue := []string{source}
	for len(queue) > 0 {
		if len(queue)+len(patterns) > maxAlternatives {
			return nil, "braces that expand to too many patterns"
		}
		current := queue[0]
		queue = queue[1:]
		open := strings.IndexByte(current, '{')
		if open < 0 {
			patterns = append(patterns, current)
			continue
		}
		alternatives, end := splitGroup(current, open)
		for _, alternative := range alternatives {
			queue = append(queue, current[:open]+alternative+current[end+1:])
		}
	}
	return patterns, ""
}

// splitGroup returns the alternatives of the group that opens at open, and where it closes.
func splitGroup(source string, open int) (alternatives []string, end int) {
	depth, start := 0, open+1
	for i := open; i < len(source); i++ {
		switch source[i] {
		case '{':
			depth++
		case ',':
			if depth == 1 {
				alternatives = append(alternatives, source[start:i])
				start = i + 1
			}
		case '}':
			if depth--; depth == 0 {
				return append(alternatives, source[start:i]), i
			}
		}
	}
	return alternatives, len(source) - 1
}
