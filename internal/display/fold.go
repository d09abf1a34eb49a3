package display

import (
	"slices"
	"strings"
)

// Fold breaks the lines of a text that take more than so many columns between words. What does not
// fit stands below the last column of a table, or deeper than its line. A command that people copy
// stays whole.
func Fold(text string, columns int) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		bare := strings.TrimRight(line, "\n")
		if lineColumns(bare) > columns {
			foldLine(&out, bare, columns)
			bare = ""
		}
		out.WriteString(bare + line[len(strings.TrimRight(line, "\n")):])
	}
	return out.String()
}

func foldLine(out *strings.Builder, line string, columns int) {
	words := strings.Split(line, " ") // an empty one is a further blank
	used, hang, blanks := 0, 0, 0
	for i := 0; i < len(words); i++ {
		word := words[i]
		if word == "" {
			blanks++
			continue
		}
		if startsCommand(words, i) {
			last := commandEnd(words, i)
			word = strings.Join(words[i:last+1], " ")
			i = last
		}
		switch width := lineColumns(word); {
		case used == 0:
			hang = blanks + 2
		case used+blanks+width > columns && used > hang:
			out.WriteByte('\n')
			used, blanks = 0, hang
		case blanks > 1 && used+blanks <= columns*3/5:
			hang = used + blanks
		}
		out.WriteString(strings.Repeat(" ", blanks) + word)
		used += blanks + lineColumns(word)
		blanks = 1
	}
}

// commandEnd finds the last word of a command: a sentence goes on behind its comma or semicolon.
func commandEnd(words []string, at int) int {
	for i := at; i < len(words); i++ {
		if strings.HasSuffix(words[i], ",") || strings.HasSuffix(words[i], ";") {
			return i
		}
	}
	return len(words) - 1
}

// startsCommand reports whether a command begins at a word: behind a colon, or with an arrow.
func startsCommand(words []string, at int) bool {
	switch {
	case words[at] == "→" && at+1 < len(words):
		at++
	case at == 0 || !strings.HasSuffix(words[at-1], ":"):
		return false
	}
	if words[at] == "fit" { // or a sentence about it
		said := []string{"did", "does", "has", "is", "itself", "reads"}
		return at+1 < len(words) && !slices.Contains(said, words[at+1])
	}
	name, _, _ := strings.Cut(words[at], "-")
	return name == "fit" || name == "subq" || name == "npm"
}
