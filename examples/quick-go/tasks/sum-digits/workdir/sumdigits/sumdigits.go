// Package sumdigits has one function.
package sumdigits

// SumDigits adds up the digits of a number.
func SumDigits(n int) int { return n % 10 }
