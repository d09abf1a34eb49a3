package evidence

import (
	"io"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// Sources is everything that is known about one attempt.
type Sources struct {
	Task   Task
	Record *ledger.Record
	// Trace is the agent's trace, unpacked; nil: there is none.
	Trace io.Reader
	// Diff is the patch between the base and what the agent left.
	Diff []byte
	// Dialects are the formats that the trace may have.
	Dialects session.Dialects
	// Prices computes the cost of what an agent does not price itself; nil leaves it unknown.
	Prices session.Prices
}

// Collect finds out what code alone can tell about one attempt. The error is for a trace that
// cannot be read; what is wrong with its content is part of the evidence.
func Collect(from Sources) (*Run, error) { return &Run{}, nil }
