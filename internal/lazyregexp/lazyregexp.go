// Package lazyregexp has regular expressions that are compiled when they are first used. A table of
// expressions that most runs never need would otherwise be paid for at every start of the program.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp is an expression that compiles itself on its first use.
type Regexp struct {
	compile func() *regexp.Regexp
}

// New returns an expression. A malformed one panics when it is used.
func New(expression string) *Regexp {
	return &Regexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })}
}

// Get returns the compiled expression.
func (r *Regexp) Get() *regexp.Regexp { return r.compile() }

// MatchString calls the method of regexp.Regexp.
func (r *Regexp) MatchString(s string) bool { return r.Get().MatchString(s) }

// FindStringSubmatch calls the method of regexp.Regexp.
func (r *Regexp) FindStringSubmatch(s string) []string { return r.Get().FindStringSubmatch(s) }

// FindAllStringSubmatch calls the method of regexp.Regexp.
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.Get().FindAllStringSubmatch(s, n)
}
