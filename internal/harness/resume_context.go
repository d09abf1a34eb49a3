package harness

import (
	"fmt"
	"strings"

	"github.com/fit-eval/fit/internal/display"
)

// What the lead learns of earlier replies: the last ones, and of each the beginning.
const (
	shownReplies    = 50
	shownReplyRunes = 2000
)

// describe returns the state of a discussion when it was suspended. A lead whose conversation
// continues knows the replies; a new lead is given them.
func (r *ResumeContext) describe(remembers bool) string {
	var b strings.Builder
	if r.Reason != "" {
		fmt.Fprintf(&b, "This discussion was suspended and continues now. The reason for the recess was: %s\n",
			r.Reason)
	}
	if !remembers && len(r.Replies) > 0 {
		b.WriteString("These replies were posted to the thread before:\n")
		for _, reply := range r.Replies[max(0, len(r.Replies)-shownReplies):] {
			fmt.Fprintf(&b, "- %s: %s\n", authorName(reply.Agent), display.CutRunes(reply.Body, shownReplyRunes))
		}
	}
	if len(r.Pending) > 0 {
		b.WriteString("These questions were still open and were cancelled:\n")
		for _, p := range r.Pending {
			fmt.Fprintf(&b, "- from %s to %s: %s\n", p.From, p.To, display.CutRunes(p.Question, shownReplyRunes))
		}
	}
	return strings.TrimRight(b.String(), "\n")
}
