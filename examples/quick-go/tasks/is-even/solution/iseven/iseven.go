// Package iseven has one function.
package iseven

// IsEven reports whether a number is even.
func IsEven(n int) bool { return n%2 == 0 }
