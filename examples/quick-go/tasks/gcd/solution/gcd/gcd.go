// Package gcd has one function.
package gcd

// Gcd returns the greatest common divisor of two numbers.
func Gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
