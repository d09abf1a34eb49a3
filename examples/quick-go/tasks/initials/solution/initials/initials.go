// Package initials has one function.
package initials

import "strings"

// Initials returns the first letters of a name.
func Initials(name string) string {
	letters := ""
	for _, word := range strings.Fields(name) {
		letters += strings.ToUpper(word[:1])
	}
	return letters
}
