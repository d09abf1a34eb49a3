// Package size reads sizes that people write.
package size

import "errors"

// Parse returns the number of bytes that a text such as "1.5MB" means.
func Parse(text string) (int64, error) {
	return 0, errors.New("not written yet")
}
