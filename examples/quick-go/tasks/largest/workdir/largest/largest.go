// Package largest has one function.
package largest

// Largest returns the largest of some numbers.
func Largest(numbers []int) int { return numbers[0] }
