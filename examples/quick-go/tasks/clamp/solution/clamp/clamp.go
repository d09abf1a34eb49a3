// Package clamp keeps numbers in a range.
package clamp

// Clamp returns the number in the range from low to high that is nearest to n.
func Clamp(n, low, high int) int {
	if n < low {
		return low
	}
	if n > high {
		return high
	}
	return n
}
