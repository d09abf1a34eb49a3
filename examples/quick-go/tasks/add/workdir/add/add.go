// Package add has one function.
package add

// Add returns the sum of two numbers.
func Add(a, b int) int { return a - b }
