package experiment

import (
	"fmt"
	"regexp"

	"github.com/fit-eval/fit/ledger"
)

// breaker stops an experiment whose attempts all fail in the same way: the world is broken, and
// going on would only burn money and attempts.
type breaker struct {
	after int
	last  string
	count int
	open  string // why it opened; empty while it is closed
}

var digits = regexp.MustCompile(`[0-9a-f]{6,}|[0-9]+`)

// see takes in how an attempt ended.
func (b *breaker) see(r *ledger.Record) {
	if r.Verdict != ledger.Error || r.ErrorClass == ledger.ErrorInterrupted || r.ErrorClass == ledger.ErrorBudget {
		if r.Verdict != ledger.Error {
			b.last, b.count = "", 0
		}
		return
	}
	signature := r.ErrorClass + ": " + digits.ReplaceAllString(r.ErrorMessage, "#")
	if signature != b.last {
		b.last, b.count = signature, 0
	}
	b.count++
	switch {
	case b.open != "":
	case r.ErrorClass == ledger.ErrorAuth:
		b.open = fmt.Sprintf("the credentials do not work: %s", r.ErrorMessage)
	case b.after > 0 && b.count >= b.after:
		b.open = fmt.Sprintf("%d attempts in a row failed alike (%s): %s", b.count, r.ErrorClass, r.ErrorMessage)
	}
}
