// Package largest has one function.
package largest

import "slices"

// Largest returns the largest of some numbers.
func Largest(numbers []int) int { return slices.Max(numbers) }
