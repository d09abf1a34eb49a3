package fleet

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/ledger"
)

// regrade grades some of the passes again on this machine, which no worker can foresee. One that
// does not come to the same verdict is kept in its record, and withholds every claim. A pass
// without the agent's files is rejected, because nobody could grade it again.
func (e *Executor) regrade(ctx context.Context, r *ledger.Record) error {
	if e.cfg.Regrade == nil || r.Verdict != ledger.Pass {
		return nil
	}
	work, err := os.Lstat(filepath.Join(e.cfg.Dir, filepath.FromSlash(r.RunDir), local.FinalDir))
	if err != nil || !work.IsDir() {
		return fmt.Errorf("%w: a pass without the files that the agent left", errRecord)
	}
	if !drawn(e.cfg.RegradeSample) {
		return nil
	}
	verdict, err := e.cfg.Regrade(ctx, r)
	if err != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("it could not be graded again at the coordinator: %v", err))
		e.noteOnce("not graded again "+r.SignedBy, fmt.Sprintf("%s: a pass of key %s could not be graded again: %v",
			r.RunDir, r.SignedBy, err))
		return nil
	}
	if r.Regraded = verdict; verdict != r.Verdict {
		e.cfg.Note(fmt.Sprintf("%s: worker %s says %s and this machine %s; nothing is claimed from this run "+
			"directory; the result was signed with key %s", r.RunDir, r.Worker, r.Verdict, verdict, r.SignedBy))
	}
	return nil
}

// drawn is true with a probability.
func drawn(probability float64) bool {
	const steps = 1 << 30
	n, err := rand.Int(rand.Reader, big.NewInt(steps))
	return err != nil || float64(n.Int64()) < probability*steps
}
