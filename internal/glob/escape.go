package glob

import "strings"

var escaper = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// Escape takes the meaning from the special characters of a path, so that it can be a part of a
// pattern of filepath.Glob.
func Escape(path string) string { return escaper.Replace(path) }
