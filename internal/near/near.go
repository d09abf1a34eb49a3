// Package near finds the word that somebody probably meant.
package near

import (
	"fmt"
	"strings"
)

// Word returns the known word that an unknown one was probably meant to be: the one with which it
// shares all but two letters, or one letter of a short word. It is empty if there is none.
func Word(typed string, known []string) string {
	best, least := "", 3
	for _, word := range known {
		allowed := 2
		if len(word) < 5 { // most short words are near to each other
			allowed = 1
		}
		if d := distance(strings.ToLower(typed), strings.ToLower(word)); d <= allowed && d < least {
			best, least = word, d
		}
	}
	return best
}

// Question asks, at the end of a message, whether the near word was meant, or the only word that
// begins with the typed one. It is empty if there is no such word.
func Question(typed string, known []string) string {
	word := Word(typed, known)
	if word == "" && len(typed) > 2 {
		word = onlyBeginning(strings.ToLower(typed), known)
	}
	if word == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", word)
}

func onlyBeginning(typed string, known []string) string {
	found := ""
	for _, word := range known {
		if !strings.HasPrefix(strings.ToLower(word), typed) {
			continue
		}
		if found != "" {
			return ""
		}
		found = word
	}
	return found
}

// distance counts the letters to insert, delete, replace or exchange with their neighbour to turn a
// word into another.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replaced := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
