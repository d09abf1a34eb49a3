package experiment

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/ledger"
)

// breaker stops an experiment whose attempts all fail for the same cause: something outside is
// broken, and continuing would only waste money and attempts.
type breaker struct {
	after int
	// others reports whether workers with another key could run attempts; nil: there are no keys.
	others func(key string) bool
	cause  streak // of the same cause
	class  streak // of the same class, whatever the cause
	open   string // why it opened; empty while it is closed
}

// streak counts errors in a row that have something in common, and the keys that signed them.
type streak struct {
	what  string
	count int
	keys  map[string]bool
}

func (s *streak) add(what, key string) {
	if s.count == 0 || s.what != what {
		*s = streak{what: what, keys: map[string]bool{}}
	}
	s.count++
	s.keys[key] = true
}

// alike is how many times more errors of one class it takes if their causes differ.
const alike = 3

// record notes how an attempt ended.
func (b *breaker) record(r *ledger.Record) {
	switch {
	case r.Verdict != ledger.Error:
		b.cause, b.class = streak{}, streak{}
		return
	case r.ErrorClass == ledger.ErrorInterrupted || r.ErrorClass == ledger.ErrorBudget || excused(r),
		r.ErrorCause == ledger.CauseUnknown: // nothing is broken
		return
	}
	b.cause.add(causeOf(r), r.SignedBy)
	b.class.add(r.ErrorClass, r.SignedBy)
	// one key says nothing about the experiment as long as others can run it
	alone := b.others != nil && b.others(r.SignedBy)
	switch {
	case b.open != "":
	case r.ErrorClass == ledger.ErrorAuth:
		b.open = fmt.Sprintf("the account or its credentials do not work: %s", r.ErrorMessage)
	case r.ErrorClass == ledger.ErrorResources:
		b.open = r.ErrorMessage
	case b.after > 0 && b.cause.count >= b.after && (!alone || len(b.cause.keys) > 1):
		b.open = fmt.Sprintf("%d attempts in a row failed for the same cause (%s): %s", b.cause.count, r.ErrorClass,
			r.ErrorMessage)
	case b.after > 0 && b.class.count >= alike*b.after && (!alone || len(b.class.keys) > 1):
		b.open = fmt.Sprintf("%d attempts in a row failed (%s), the last one: %s", b.class.count, r.ErrorClass,
			r.ErrorMessage)
	}
}

var (
	pathForm   = lazyregexp.New(`(?:/[^\s/:;,"'()]+)+/?`)
	numberForm = lazyregexp.New(`\b[0-9a-f]{6,}\b|[0-9]+`)
)

// causeOf returns the cause of an infrastructure error: its class, and its message without what
// belongs to the cell (its task, its arm, paths, numbers). Equal causes have equal texts.
func causeOf(r *ledger.Record) string {
	message, _, _ := strings.Cut(r.ErrorMessage, "\n")
	message = pathForm.Get().ReplaceAllString(message, "…")
	for _, name := range []string{r.TaskID, r.Arm} {
		if name != "" {
			word := regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(name) + `($|\W)`)
			message = word.ReplaceAllString(message, "${1}…${2}")
		}
	}
	return r.ErrorClass + ": " + numberForm.Get().ReplaceAllString(message, "#")
}
