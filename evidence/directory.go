package evidence

import (
	"context"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// Directory is a run directory whose attempts are looked at.
type Directory struct {
	Root     string
	Dialects session.Dialects
	Prices   session.Prices
	// NoCache neither reads nor writes the cache.
	NoCache bool
}

// Run returns the evidence about an attempt: from the cache, if that was made from the same files,
// the same task and the same record, else from the trace and the diff. A cache that cannot be
// written is no error.
func (d *Directory) Run(ctx context.Context, task Task, record *ledger.Record) (*Run, error) {
	return &Run{}, nil
}

// Diff returns the patch of an attempt; nil if there is none.
func (d *Directory) Diff(record *ledger.Record) ([]byte, error) { return nil, nil }
