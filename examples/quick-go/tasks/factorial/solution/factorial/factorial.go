// Package factorial has one function.
package factorial

// Factorial returns the product of the numbers from 1 to n.
func Factorial(n int) int {
	if n == 0 {
		return 1
	}
	return n * Factorial(n-1)
}
