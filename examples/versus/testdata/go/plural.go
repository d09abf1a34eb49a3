// Package plural counts things in words.
package plural

import "fmt"

// Count says how many things there are: "1 file", "3 files".
func Count(n int, noun string) string {
	return fmt.Sprintf("%d %ss", n, noun)
}
