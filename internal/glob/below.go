package glob

import (
	"path/filepath"
	"strings"
)

var escaper = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// Below lists what a well-formed pattern of filepath.Glob matches below a directory, sorted.
// Special characters in the directory's own path are literal.
func Below(dir, pattern string) []string {
	found, _ := filepath.Glob(filepath.Join(escaper.Replace(dir), pattern)) // only a bad pattern is an error
	return found
}
