package skill

import (
	"strings"
	"unicode"
)

// leakWords is how many words in a row two texts do not share by chance.
const leakWords = 10

// Leak returns the longest sequence of words that a text of a test case shares with the skill, if
// it is longer than chance explains; empty otherwise. Such a case tests whether the agent remembers
// what it read. Case and punctuation do not count.
func Leak(skill, text string) string {
	known := map[string]bool{}
	words, _ := wordsOf(skill)
	for i := range len(words) - leakWords + 1 {
		known[strings.Join(words[i:i+leakWords], " ")] = true
	}
	own, shown := wordsOf(text)
	longest, run := "", 0
	for i := range len(own) - leakWords + 1 {
		if !known[strings.Join(own[i:i+leakWords], " ")] {
			run = 0
			continue
		}
		run++
		if shared := strings.Join(shown[i+1-run:i+leakWords], " "); len(shared) > len(longest) {
			longest = shared
		}
	}
	return longest
}

// wordsOf splits a text into words, folded and as they are written. Two characters of a script
// without spaces are a word.
func wordsOf(text string) (folded, shown []string) {
	for _, field := range strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		parts := []string{field}
		if strings.ContainsFunc(field, func(r rune) bool {
			return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
		}) {
			parts = parts[:0]
			runes := []rune(field)
			for i := 0; i < len(runes); i += 2 {
				parts = append(parts, string(runes[i:min(i+2, len(runes))]))
			}
		}
		for _, part := range parts {
			folded, shown = append(folded, strings.ToLower(part)), append(shown, part)
		}
	}
	return folded, shown
}
