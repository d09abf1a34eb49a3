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
	after   int
	cause   string // of the last errors in a row
	count   int    // of errors in a row with that cause
	class   string
	classes int    // of errors in a row of that class, whatever the cause
	open    string // why it opened; empty while it is closed
}

// alike is how many times more errors of one class it takes if their causes differ.
const alike = 3

// record notes how an attempt ended.
func (b *breaker) record(r *ledger.Record) {
	switch {
	case r.Verdict != ledger.Error:
		b.cause, b.count, b.class, b.classes = "", 0, "", 0
		return
	case r.ErrorClass == ledger.ErrorInterrupted || r.ErrorClass == ledger.ErrorBudget || excused(r):
		return
	}
	if cause := causeOf(r); cause != b.cause {
		b.cause, b.count = cause, 0
	}
	if r.ErrorClass != b.class {
		b.class, b.classes = r.ErrorClass, 0
	}
	b.count++
	b.classes++
	switch {
	case b.open != "":
	case r.ErrorClass == ledger.ErrorAuth:
		b.open = fmt.Sprintf("the account or its credentials do not work: %s", r.ErrorMessage)
	case r.ErrorClass == ledger.ErrorResources:
		b.open = r.ErrorMessage
	case b.after > 0 && b.count >= b.after:
		b.open = fmt.Sprintf("%d attempts in a row failed for the same cause (%s): %s", b.count, r.ErrorClass,
			r.ErrorMessage)
	case b.after > 0 && b.classes >= alike*b.after:
		b.open = fmt.Sprintf("%d attempts in a row failed (%s), the last one: %s", b.classes, r.ErrorClass,
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
