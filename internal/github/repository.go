package github

import (
	"fmt"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// Repository is the owner and the name of a repository.
type Repository struct{ Owner, Name string }

var (
	slug      = lazyregexp.New(`^([\w.-]+)/([\w.-]+)$`)
	urlSuffix = lazyregexp.New(`[:/]([\w.-]+)/([\w.-]+?)(?:\.git)?/?$`)
)

// ParseRepository reads owner/name, or a URL of a repository: https, ssh, with and without .git.
func ParseRepository(text string) (Repository, error) {
	text = strings.TrimSpace(text)
	match := slug.FindStringSubmatch(strings.TrimSuffix(text, ".git"))
	if match == nil && strings.Contains(text, ":") {
		match = urlSuffix.FindStringSubmatch(text)
	}
	if match == nil || isDots(match[1]) || isDots(match[2]) {
		return Repository{}, fmt.Errorf("%q is not a repository: use owner/name", text)
	}
	return Repository{match[1], match[2]}, nil
}

func isDots(s string) bool { return strings.Trim(s, ".") == "" }
