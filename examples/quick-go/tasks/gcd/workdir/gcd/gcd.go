// Package gcd has one function.
package gcd

// Gcd returns the greatest common divisor of two numbers.
func Gcd(a, b int) int { return min(a, b) }
