// Package reverse has one function.
package reverse

// Reverse returns a text backwards.
func Reverse(text string) string { return text }
