// Package sumdigits has one function.
package sumdigits

// SumDigits adds up the digits of a number.
func SumDigits(n int) int {
	sum := 0
	for ; n > 0; n /= 10 {
		sum += n % 10
	}
	return sum
}
