// Package reverse has one function.
package reverse

import "slices"

// Reverse returns a text backwards.
func Reverse(text string) string {
	letters := []byte(text)
	slices.Reverse(letters)
	return string(letters)
}
