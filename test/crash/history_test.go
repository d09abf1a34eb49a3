package crash

import (
	"fmt"

	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/trace"
)

// delivery is one message to one member.
type delivery struct {
	id int64
	to string
}

// problems compares the trace of a meeting with one in which nobody was killed: the same messages,
// each of which reached everybody it was meant for exactly once.
func (h history) problems() []string {
	var found []string
	complain := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if h.last() != trace.TypeSummary {
		complain("the last line is no summary but %q", h.last())
	}
	for i := 1; i < len(h.lines); i++ {
		if h.lines[i].Seq <= h.lines[i-1].Seq {
			complain("seq %d comes after %d", h.lines[i].Seq, h.lines[i-1].Seq)
		}
	}
	opened, ended := map[int64]int{}, map[int64]int{}
	wanted, got := map[delivery]bool{{0, "facilitator"}: true}, map[delivery]int{}
	messages := 0
	for _, e := range h.seen {
		switch e.Type {
		case trace.TypeMessage:
			for _, to := range e.receivers() {
				wanted[delivery{e.ID, to}] = true
			}
			switch harness.Kind(e.Kind) {
			case harness.KindSynthetic: // a reminder may be needed or not, as time goes by
				continue
			case harness.KindAsk:
				opened[e.AskID]++
			case harness.KindAnswer:
				ended[e.AskID]++
				if e.From == harness.OrchestratorName {
					complain("ask %d was not answered: %s", e.AskID, e.Text)
				}
			}
			messages++
		case trace.TypeDelivery:
			for _, id := range e.IDs {
				got[delivery{id, e.To}]++
			}
			if e.Redelivery {
				complain("messages %v were delivered to %s again", e.IDs, e.To)
			}
		case "warning", "runner_error", trace.TypeProtocolViolation, trace.TypeCancel, "undelivered":
			complain("there was a %s: %s", e.Type, e.Text)
		}
	}
	if messages != meetingMessages {
		complain("there were %d messages, not %d", messages, meetingMessages)
	}
	for id, n := range opened {
		if n != 1 || ended[id] != 1 {
			complain("ask %d was opened %d times and ended %d times", id, n, ended[id])
		}
	}
	for d, n := range got {
		if n != 1 || !wanted[d] {
			complain("message %d reached %s %d times", d.id, d.to, n)
		}
	}
	for d := range wanted {
		if got[d] == 0 {
			complain("message %d never reached %s", d.id, d.to)
		}
	}
	return found
}

// receivers are those whom a message is meant for.
func (e historyEvent) receivers() []string {
	if e.To != "" {
		return []string{e.To}
	}
	var list []string
	for _, name := range append([]string{"facilitator"}, meetingNames...) {
		if name != e.From {
			list = append(list, name)
		}
	}
	return list
}
