package democli

import (
	"fmt"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/experiment"
)

// ticker shows how far an experiment is: one line that is written over on a terminal, a line now
// and then elsewhere.
type ticker struct {
	con      *console.Console
	terminal bool
	quarter  int
}

func newTicker(con *console.Console) *ticker {
	return &ticker{con: con, terminal: con.StderrIsTerminal()}
}

func (t *ticker) show(p experiment.Progress) {
	line := fmt.Sprintf("%d of %d runs, %d passed, %s", p.Done, p.Total, p.Passed, display.Dollars(p.CostUSD))
	if t.terminal {
		t.con.Status(line)
		if p.Done == p.Total {
			fmt.Fprint(t.con.Stderr, "\n\n")
		}
		return
	}
	if quarter := 4 * p.Done / max(p.Total, 1); quarter > t.quarter {
		t.quarter = quarter
		fmt.Fprintln(t.con.Stderr, line)
	}
}
