// Package rangesum has one function.
package rangesum

// RangeSum adds up the numbers from low to high.
func RangeSum(low, high int) int {
	sum := 0
	for n := low; n < high; n++ {
		sum += n
	}
	return sum
}
