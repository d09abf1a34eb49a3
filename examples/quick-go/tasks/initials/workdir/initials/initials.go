// Package initials has one function.
package initials

// Initials returns the first letters of a name.
func Initials(name string) string { return name[:1] }
