package glob

import (
	"path/filepath"
	"strings"
)

var escaper = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// Below lists what a well-formed pattern of filepath.Glob matches below a directory, sorted. The
// special characters of the directory's own path mean themselves.
func Below(dir, pattern string) []string {
	found, _ := filepath.Glob(filepath.Join(escaper.Replace(dir), pattern)) // only a bad pattern is an error
	return found
}
