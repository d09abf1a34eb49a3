// Package palindrome has one function.
package palindrome

import "strings"

// Palindrome reports whether a text reads the same backwards.
func Palindrome(text string) bool {
	text = strings.ToLower(text)
	for i := range text {
		if text[i] != text[len(text)-1-i] {
			return false
		}
	}
	return true
}
