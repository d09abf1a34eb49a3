// Package countwords has one function.
package countwords

import "strings"

// CountWords counts the words of a text.
func CountWords(text string) int { return len(strings.Fields(text)) }
